"""Protocols of networks that need a step before training."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from torch import nn

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged


@runtime_checkable
class StartsFromTexts(Protocol):
    """A network whose initial or final weights are computed from the training texts."""

    def start_from(self, texts: Ragged) -> None:
        """Fit the weights to the training documents, or to the training answers."""


@runtime_checkable
class EmbedsDocuments(Protocol):
    """A network with a head over frozen embeddings, so that each document is encoded once."""

    def embed_documents(
        self, parts: Sequence[EncodedDocuments], batch: int, advance: Callable[[int, int], None]
    ) -> tuple[nn.Module, list[EncodedDocuments]]:
        """Return the head to train, as a network of its own, and the documents it reads."""
