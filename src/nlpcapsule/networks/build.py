"""Build networks from a configuration, through the registry; their weights depend only on the seed."""

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
    """Build the label network of a configuration; see `NetworkInputs` for the arguments."""
    length, named = config.text.max_tokens, config.text.label_names is not None
    inputs = NetworkInputs(
        vocabulary_size, padding_id, length, label_count, vectors, transformer=transformer, named=named
    )
    return _build(config, "labels", inputs)


def build_answer_network(
    config: Config,
    vocabulary_size: int,
    padding_id: int = 0,
    vectors: np.ndarray | None = None,
    idf: np.ndarray | None = None,
    transformer: dict[str, Any] | None = None,
) -> nn.Module:
    """Build the answer network of a configuration; see `NetworkInputs` for the arguments."""
    length = config.text.max_tokens
    inputs = NetworkInputs(vocabulary_size, padding_id, length, 0, vectors, idf, transformer)
    return _build(config, "answers", inputs)


def _build(config: Config, task: str, inputs: NetworkInputs) -> nn.Module:
    build = getattr(find_system(config.model.name), task)
    if build is None:
        raise TypeError(f"{config.model.name} has no network for {task}")
    torch.manual_seed(config.training.seed)
    return build(config.model, inputs)
