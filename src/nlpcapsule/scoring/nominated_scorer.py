"""Score the labels that a cheap network nominates with a network trained on such candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.scoring.documents import rank_documents
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.scorer import Scores

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, eq=False)
class NominatedScorer:
    """A nominator (a Kim-CNN) over all labels, and a network over its best ones."""

    nominator: NetworkScorer  # picks the candidates
    scorer: NetworkScorer  # scores them
    count: int  # candidates per document

    @property
    def network(self) -> nn.Module:
        """The network that scores."""
        return self.scorer.network

    @property
    def batch(self) -> int:
        """Documents per forward pass."""
        return self.scorer.batch

    def candidates(self, tokens: Ragged) -> np.ndarray:
        """Return the labels (N, C) that the nominator ranks first."""
        return rank_documents(self.nominator, tokens, self.count).labels

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the nominated labels, or the given candidates (N, C)."""
        return self.scorer.score(tokens, self.candidates(tokens) if candidates is None else candidates)
