"""Small label networks of every kind that can be exported, and documents for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpcapsule.config import Config
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.label_query import LabelQueryNetwork

VOCABULARY, LABELS, LENGTH = 40, 9, 14
SIZES = {"capsule_size": 8, "condensed": 4, "document_size": 6, "text.max_tokens": LENGTH}
ENCODERS: dict[str, dict[str, Any]] = {
    "convolution": {"embedding_size": 8, "filters": 8, "windows": (1, 2, 3)},
    "bilstm": {"embedding_size": 8, "state_size": 5, "layers": 2},
    "transformer": {"window": 6},
}
TRANSFORMER = {
    "model_type": "bert",
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": LENGTH,
    "initializer_range": 0.2,  # or all states would be much alike
}
BANDWIDTH = 0.4  # narrow enough for some documents to stop later than others
KINDS = [f"{encoder} {routing}" for encoder in ENCODERS for routing in ("kde", "adaptive-kde")]
KINDS += ["convolution dot", "convolution adaptive-kde uncondensed"]


def exported_kind(kind: str, **settings: Any) -> LabelQueryNetwork:
    """A network in eval mode, whose weights are large enough for scores to differ."""
    encoder, routing, *others = kind.split()
    values = {**SIZES, "encoder": encoder, "routing": routing, **ENCODERS[encoder], **settings}
    if others:
        values["condensed"] = 0
    config = Config.build("labels", "label-query", overrides=values)
    network = build_network(config, VOCABULARY, label_count=LABELS, transformer=TRANSFORMER)
    assert isinstance(network, LabelQueryNetwork)
    if network.names is not None:
        names = Ragged.from_rows(np.array([1 + label, 20 + label]) for label in range(LABELS))
        idf, counts = np.linspace(0.2, 1, VOCABULARY, dtype=np.float32), np.arange(LABELS)
        network.read_names(names, idf, counts, Ragged.from_rows(row.numpy() for row in documents()[0]))
    with torch.no_grad():
        network.labels.query.mul_(torch.linspace(0.5, 8, LABELS).unsqueeze(1))
        if network.document.compress_query is not None:
            network.document.compress_query.mul_(8)  # capsules of different tokens
        if network.vote_scale is not None:
            network.vote_scale.train()(
                network.document.condense(*network.document.encoder(documents()[0]))[0]
            )
            network.vote_scale.bandwidth.fill_(BANDWIDTH)
    return network.eval()


def documents(seed: int = 3) -> tuple[Tensor, Tensor]:
    """Token ids (5, 14) with padding, and candidates (5, 4)."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, VOCABULARY, (5, LENGTH), generator=generator)
    for row, length in zip(tokens, (LENGTH, 9, 5, 2, 1), strict=True):
        row[length:] = 0
    return tokens, torch.randint(0, LABELS, (5, 4), generator=generator)


def unpadded_documents(seed: int = 3) -> Iterator[tuple[Tensor, Tensor]]:
    """The same, one by one and without padding."""
    for row, candidates in zip(*documents(seed), strict=True):
        yield row[row > 0].unsqueeze(0), candidates.unsqueeze(0)
