"""Protocols of networks that need a step before training."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from nlpcapsule.data.ragged import Ragged


@runtime_checkable
class StartsFromTexts(Protocol):
    """A network whose initial or final weights are computed from the training texts."""

    def start_from(self, texts: Ragged) -> None:
        """Fit the weights to the training documents, or to the training answers."""


@runtime_checkable
class EmbedsDocuments(Protocol):
    """A network that is a head over frozen embeddings, so that each document is encoded once."""

    head: nn.Module
    embedding_width: int

    def eval(self) -> Any:
        """Switch to evaluation mode."""

    def embed(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to embeddings (B, h), without gradients."""
