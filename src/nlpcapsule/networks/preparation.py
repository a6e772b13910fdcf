"""What a network may ask for before it is trained."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from nlpcapsule.data.ragged import Ragged


@runtime_checkable
class StartsFromTexts(Protocol):
    """A network whose start, or all of it, is computed from the training texts."""

    def start_from(self, texts: Ragged) -> None:
        """Fits the start to the training documents, or to the training answers."""


@runtime_checkable
class EmbedsDocuments(Protocol):
    """A network that is a head over embeddings which are not trained, so each document is read once."""

    head: nn.Module
    embedding_width: int

    def eval(self) -> Any:
        """Switches dropout off."""

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, l) token ids → (B, h) embeddings, without a gradient."""
