"""Networks small enough to be run in milliseconds, and rows of tokens for them."""

from importlib.util import find_spec

import torch

from class_constants import config_of
from nlpcapsule.networks.build import build_network

VOCABULARY, LABELS, LENGTH, PADDING = 40, 9, 14, 0
CAPSULE_ROUTINGS = ["dynamic", "em", "kde", "kde-em", "adaptive-kde"]
LABEL_ROUTINGS = ["dot", "kde", "adaptive-kde", "adaptive-kde-unscaled"]

SIZES = {
    "label-query": {
        "embedding_size": 8,
        "filters": 8,
        "capsule_size": 8,
        "condensed": 4,
        "document_size": 6,
    },
    "paper": {"embedding_size": 16, "filters": 4, "capsule_size": 8, "condensed": 4},
    "official": {"embedding_size": 16, "filters": 4, "capsule_size": 8, "condensed": 4},
    "kim-cnn": {"embedding_size": 8, "filters": 8},
    "xml-cnn": {"embedding_size": 8, "filters": 8, "pools": 3, "bottleneck": 10},
    "bow-cnn": {"windows": (4, 1), "filters": 8, "pools": 3},
    "released-xml-cnn": {"embedding_size": 16, "filters": 4, "bottleneck": 10},
    "cap-zhao": {"embedding_size": 8, "filters": 8, "channels": 3, "capsule_size": 6},
    "convolution-linear": {"embedding_size": 8, "filters": 8},
}

# Every network with every routing, with and without compression, with votes per pair and per class.
VARIANTS = [
    *(("label-query", {"routing": r, "condensed": m}) for r in LABEL_ROUTINGS for m in (4, 0)),
    ("label-query", {"document_size": 0}),
    *(("paper", {"routing": r, "condensed": m}) for r in CAPSULE_ROUTINGS for m in (4, 0)),
    *(("paper", {"routing": r, "condensed": m, "votes": "class"}) for r in CAPSULE_ROUTINGS for m in (4, 0)),
    *(("paper", {"softmax": "standard", "kappa": 0.5, "votes": votes}) for votes in ("pair", "class")),
    *(("paper", {"routing": "adaptive-kde-literal", "votes": votes}) for votes in ("pair", "class")),
    ("official", {}),
    ("kim-cnn", {}),
    ("xml-cnn", {}),
    *(("bow-cnn", {"pooling": pooling}) for pooling in ("average", "max")),
    *(("released-xml-cnn", {"relu": relu}) for relu in (False, True)),
    *(("cap-zhao", {"variant": variant}) for variant in ("A", "B")),
    ("convolution-linear", {}),
]
# These take outputs of their own for each document; the others score all labels.
ROUTED_TO_CHOSEN_LABELS = ("label-query", "paper", "official")
SCORE_CHOSEN_LABELS = (
    *ROUTED_TO_CHOSEN_LABELS,
    "convolution-linear",
    "transformer-linear",
    "embedding-linear",
)

# The transformer of those that are made of a pretrained one; documents fill one window or several.
TINY_TRANSFORMER = {
    "model_type": "bert",
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.2,  # or all states would be much alike
}
ON_A_TRANSFORMER = ("transformer-linear", "embedding-linear")
if find_spec("transformers") is not None:
    SIZES |= {model: {} for model in ON_A_TRANSFORMER}
    VARIANTS += [(model, {"window": window}) for model in ON_A_TRANSFORMER for window in (512, 6)]


def name_of(value):
    """A readable test id for a variant's settings."""
    if isinstance(value, dict):
        return "-".join(f"{key}={setting}" for key, setting in value.items()) or "default"
    return None


def tiny_config(model, task="labels", **settings):
    sizes = {**SIZES[model], "text.max_tokens": LENGTH}
    if settings.get("encoder") == "bilstm":
        del sizes["filters"]
    elif settings.get("encoder", "convolution") != "convolution":  # a transformer
        del sizes["filters"], sizes["embedding_size"]
    return config_of(task, model, {**sizes, **settings})


def tiny_network(model, labels=LABELS, vectors=None, **settings):
    transformer = TINY_TRANSFORMER if model in ON_A_TRANSFORMER else None
    config = tiny_config(model, **settings)
    return build_network(
        config, VOCABULARY, label_count=labels, padding_id=PADDING, vectors=vectors, transformer=transformer
    ).eval()


def tiny_answer_network(model, **settings):
    config = tiny_config(model, "answers", **settings)
    return build_network(config, VOCABULARY, padding_id=PADDING).eval()


def token_rows(*lengths, width=None, seed=5):
    """(B, width) random tokens, filled up with padding."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((len(lengths), width or max(lengths)), PADDING)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(1, VOCABULARY, (length,), generator=generator)
    return rows
