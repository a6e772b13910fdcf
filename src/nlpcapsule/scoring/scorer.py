"""The protocol of every label scorer: token ids in, log-odds of labels out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from nlpcapsule.data.ragged import Ragged

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Scores:
    """Log-odds of the labels of N documents, C each; the last two are None where nothing is routed."""

    labels: np.ndarray  # (N, C) int64 label ids of each document, or (C,) where all documents have the same
    log_odds: np.ndarray  # (N, C), in the order of `labels`
    iterations: np.ndarray | None = None  # (N,) routing iterations each document took
    agreement: np.ndarray | None = None  # (N, T) negative agreement by iteration, NaN once it stopped


class LabelScorer(Protocol):
    """Protocol of label scorers. A document's scores depend on that document alone.

    Scoring changes no state, so threads may share a scorer. Networks must be in eval mode.
    """

    @property
    def network(self) -> nn.Module | None:
        """The network that scores; None where there is none."""

    @property
    def batch(self) -> int:
        """Documents to score at a time, so that the scores of all labels fit into memory."""

    def candidates(self, tokens: Ragged) -> np.ndarray | None:
        """Return the labels (N, C) to score for each document; None for all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the given candidates (N, C), or those that `candidates` returns.

        A scorer may leave out labels below the first `top_k`; None asks for all.
        """


@runtime_checkable
class ReadsFirst(Protocol):
    """Protocol of label scorers that read documents before candidates are known."""

    def read(self, tokens: Ragged) -> list[Any]:
        """Return what scores need of each document."""

    def score_read(self, read: Sequence[Any], candidates: np.ndarray) -> Scores:
        """Score candidates (N, C) of documents that were read."""


def check_eval_mode(network: nn.Module) -> None:
    """Reject a network in training mode: dropout would be active, and scoring would change its state."""
    if network.training:
        raise RuntimeError("the network is in training mode: call its eval() once, before scoring")
