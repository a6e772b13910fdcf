"""Build networks from a configuration; some need a step before training, as the protocols say."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.registry import NetworkInputs, find_system


def build_network(
    config: Config,
    vocabulary_size: int,
    padding_id: int = 0,
    label_count: int = 0,
    vectors: np.ndarray | None = None,
    idf: np.ndarray | None = None,
    transformer: dict[str, Any] | None = None,
) -> nn.Module:
    """Build the network of a configuration for its task; see `NetworkInputs` for the arguments.

    The initial weights depend only on the seed.
    """
    length, named = config.text.max_tokens, config.text.label_names is not None
    inputs = NetworkInputs(vocabulary_size, padding_id, length, label_count, vectors, idf, transformer, named)
    build = getattr(find_system(config.model.name), config.task)
    if build is None:
        raise TypeError(f"{config.model.name} has no network for {config.task}")
    torch.manual_seed(config.training.seed)
    return build(config.model, inputs)


def start_from_texts(network: nn.Module, texts: Ragged) -> None:
    """Call the method `start_from` of those parts of a network that have it.

    It computes their initial or final weights from the training documents, or the training answers.
    """
    for module in network.modules():
        start_from = getattr(module, "start_from", None)
        if start_from is not None:
            start_from(texts)


@runtime_checkable
class EmbedsDocuments(Protocol):
    """A network with a head over frozen embeddings, so that each document is encoded once."""

    def embed_documents(
        self, parts: Sequence[EncodedDocuments], batch: int, advance: Callable[[int, int], None]
    ) -> tuple[nn.Module, list[EncodedDocuments]]:
        """Return the head to train, as a network of its own, and the documents it reads."""
