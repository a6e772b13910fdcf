"""Score the labels that a cheap network nominates with a network trained on such candidates."""

from dataclasses import dataclass, field

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.scoring.documents import rank_documents
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.scorer import Scores


@dataclass(frozen=True, eq=False)
class NominatedScorer(NetworkScorer):
    """A nominator (a Kim-CNN) over all labels, and a network over its best ones."""

    nominator: NetworkScorer = field(kw_only=True)  # picks the candidates
    count: int = field(kw_only=True)  # candidates per document

    def candidates(self, tokens: Ragged) -> np.ndarray:
        """Return the labels (N, C) that the nominator ranks first."""
        return rank_documents(self.nominator, tokens, self.count).labels

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the nominated labels, or the given candidates (N, C)."""
        return super().score(tokens, self.candidates(tokens) if candidates is None else candidates)
