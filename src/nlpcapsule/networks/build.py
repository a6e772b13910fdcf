"""Build networks from a configuration, through the registry."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.registry import NetworkInputs, find_system


def build_label_network(
    config: Config,
    vocabulary_size: int,
    label_count: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    transformer: dict[str, Any] | None = None,
) -> nn.Module:
    """Build the label network of a configuration; its weights depend only on the seed.

    Args:
        config: The configuration.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: Id of the padding token.
        vectors: Initial word vectors.
        transformer: A pretrained transformer's configuration, where its weights will be loaded from a model
            folder; None reads the encoder that the configuration names.
    """
    build = find_system(config.model.name).labels
    if build is None:
        raise TypeError(f"{config.model.name} has no network for labels")
    torch.manual_seed(config.training.seed)
    return build(
        config.model,
        NetworkInputs(
            vocabulary_size,
            padding_id,
            config.text.max_tokens,
            label_count,
            vectors,
            transformer=transformer,
            named=config.text.label_names is not None,
        ),
    )


def build_answer_network(
    config: Config,
    vocabulary_size: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    idf: np.ndarray | None = None,
    transformer: dict[str, Any] | None = None,
) -> nn.Module:
    """Build the answer network of a configuration; its weights depend only on the seed.

    Args:
        config: The configuration.
        vocabulary_size: Number of tokens.
        padding_id: Id of the padding token.
        vectors: Initial word vectors.
        idf: (V,) weights of words that question and answer share, for networks that use them.
        transformer: As in `build_label_network`.
    """
    build = find_system(config.model.name).answers
    if build is None:
        raise TypeError(f"{config.model.name} has no network for answers")
    torch.manual_seed(config.training.seed)
    inputs = NetworkInputs(
        vocabulary_size, padding_id, config.text.max_tokens, vectors=vectors, idf=idf, transformer=transformer
    )
    return build(config.model, inputs)
