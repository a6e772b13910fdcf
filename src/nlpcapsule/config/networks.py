"""The networks there are, for labels and for answers, and where their defaults differ."""

from __future__ import annotations

from typing import Any

from nlpcapsule.config.answer_baselines import (
    ANSWER_BASELINES,
    YARDSTICKS,
    AnswerBaselineSettings,
    YardstickSettings,
)
from nlpcapsule.config.lexical_settings import LEXICAL_MODELS, LexicalModelSettings
from nlpcapsule.config.linear_settings import LINEAR_MODELS, LinearModelSettings
from nlpcapsule.config.settings import (
    BowCNNSettings,
    CapZhaoSettings,
    KimCNNSettings,
    LabelQuerySettings,
    OfficialSettings,
    PaperSettings,
    ReleasedXMLCNNSettings,
    Settings,
    XMLCNNSettings,
)

ModelSettings = (
    LabelQuerySettings
    | PaperSettings
    | OfficialSettings
    | KimCNNSettings
    | XMLCNNSettings
    | BowCNNSettings
    | ReleasedXMLCNNSettings
    | CapZhaoSettings
    | LinearModelSettings
    | LexicalModelSettings
    | AnswerBaselineSettings
    | YardstickSettings
)

LABEL_MODELS: dict[str, type[Settings]] = {
    "label-query": LabelQuerySettings,
    "paper": PaperSettings,
    "official": OfficialSettings,
    "kim-cnn": KimCNNSettings,
    "xml-cnn": XMLCNNSettings,
    "bow-cnn": BowCNNSettings,
    "released-xml-cnn": ReleasedXMLCNNSettings,
    "cap-zhao": CapZhaoSettings,
    **LINEAR_MODELS,
    **LEXICAL_MODELS,
}

ANSWER_MODELS: dict[str, type[Settings]] = {
    "label-query": LabelQuerySettings,
    "paper": PaperSettings,
    "cap-zhao": CapZhaoSettings,
    **ANSWER_BASELINES,
    **YARDSTICKS,
}

MODELS = {**LABEL_MODELS, **ANSWER_MODELS}

_ANSWERS: dict[str, dict[str, Any]] = {
    "text": {"max_tokens": 64},
    "training": {"loss": "pointwise", "epochs": 10},
}

# A pretrained transformer moves in small steps; the texts' special tokens count as tokens.
_PRETRAINED: dict[str, dict[str, Any]] = {
    "text": {"max_tokens": 128},
    "training": {"loss": "pointwise", "epochs": 3, "batch_size": 8, "learning_rate": 3e-5, "warmup": 0.1},
    "inference": {"batch": 8},
}

# Where a network wants other defaults than the sections give.
DEFAULTS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    # As measured in results/fusion.json: of the routings, three KDE iterations lose nothing to any other.
    ("labels", "label-query"): {
        "text": {"max_tokens": 1000},
        "training": {"epochs": 25},
        "model": {"routing": "kde"},
        "inference": {"lexical": "auto"},
    },
    ("labels", "paper"): {
        "training": {"negatives": "batch", "weight_decay": 0.0, "batch_size": 64, "learning_rate": 3e-3},
        "inference": {"candidates": 200},
    },
    ("labels", "official"): {
        "training": {"negatives": "batch", "weight_decay": 0.0, "shuffle": False},
        "inference": {"candidates": 200},
    },
    ("labels", "cap-zhao"): {"training": {"weight_decay": 0.0}},
    ("labels", "convolution-linear"): {"text": {"max_tokens": 1000}, "training": {"epochs": 25}},
    ("labels", "transformer-linear"): {
        "text": {"max_tokens": 512},  # one window
        "training": {"epochs": 15, "learning_rate": 3e-3},
    },
    # Chosen on eurlex15k's documents to select on, of which 128 word pieces were read.
    ("labels", "embedding-linear"): {
        "text": {"max_tokens": 512},
        "training": {"epochs": 30, "batch_size": 128, "learning_rate": 3e-3, "weight_decay": 0.3},
    },
    **{("labels", name): {"text": {"max_tokens": 1000}} for name in LEXICAL_MODELS},
    **{("answers", name): _ANSWERS for name in ANSWER_BASELINES},
    # Names are rare and tell most, so every word of the training part counts.
    ("answers", "label-query"): {
        "text": {**_ANSWERS["text"], "min_count": 1, "vocabulary_size": 100_000},
        "training": {**_ANSWERS["training"], "learning_rate": 5e-4},
        "model": {
            "overlap": True,
            "windows": (1, 3),
            "condensed": 32,
            "filters": 128,
            "capsule_size": 128,
            "word_dropout": 0.2,
            "token_dropout": 0.3,
        },
    },
    ("answers", "cap-zhao"): {**_ANSWERS, "training": {**_ANSWERS["training"], "weight_decay": 0.0}},
    ("answers", "bm25"): {"text": {"max_tokens": 500, "min_count": 1}, "training": {"loss": "pointwise"}},
    ("answers", "bi-encoder"): _PRETRAINED,
    ("answers", "cross-encoder"): _PRETRAINED,
    ("answers", "paper"): {
        "text": {**_ANSWERS["text"], "min_count": 1, "vocabulary_size": 100_000},
        "training": {**_ANSWERS["training"], "learning_rate": 5e-4},
        # Chosen on held-out questions of TREC QA: a cosine of 16 numbers hardly tells texts apart.
        "model": {
            "windows": (3, 4, 5),
            "condensed": 32,
            "capsule_size": 256,
        },
    },
}

# Where it wants yet others once its encoder is a pretrained transformer: docs/encoders.md, docs/answers.md.
PRETRAINED_DEFAULTS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("labels", "label-query"): {
        "text": {"max_tokens": 1022},  # two windows of 512, less the marks around each
        "training": {"epochs": 10},
        "model": {"encoder_rate": 1e-4},
    },
    ("answers", "label-query"): {
        "text": {"max_tokens": 128},
        "training": {"epochs": 6, "batch_size": 8, "warmup": 0.1},
        "model": {"encoder_rate": 3e-5, "word_dropout": 0.0, "token_dropout": 0.1, "condensed": 8},
        "inference": {"batch": 8},
    },
}
