"""Score the labels that a lexical system nominates, fusing its log-odds with a network's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.bag_of_words import SharedDocuments
from nlpcapsule.lexical.evidence import WordEvidence
from nlpcapsule.scoring.fusion import CandidateFeatures, Fusion
from nlpcapsule.scoring.lexical_scorer import select_log_odds
from nlpcapsule.scoring.scorer import LabelScorer, Scores

if TYPE_CHECKING:
    from torch import nn

CANDIDATES = 200  # nominated labels per document by default
_DOCUMENTS_AT_A_TIME = 1_000


@dataclass(frozen=True, eq=False)
class HybridParts:
    """The lexical system and the network, before the fusion weights are fitted."""

    lexical: WordEvidence  # nominates candidates and scores them by their words
    scorer: LabelScorer  # the network
    frequency: np.ndarray  # (n,) of each label, as `label_frequency` returns it
    count: int = CANDIDATES  # candidates per document

    def features(
        self, tokens: Ragged, candidates: np.ndarray, lexical: np.ndarray
    ) -> tuple[CandidateFeatures, Scores]:
        """Return the features of candidates (N, C) that the fusion weights combine, and the network's scores.

        `lexical` (N, C) is the lexical system's log-odds of the candidates.
        """
        scored = self.scorer.score(tokens, candidates)
        shares, nearest = self.lexical.shares(tokens, candidates)
        names = self.lexical.names(tokens, candidates)
        frequency = self.frequency[candidates]
        return CandidateFeatures(scored.log_odds, lexical, shares, nearest, frequency, names), scored


@dataclass(frozen=True, eq=False)
class HybridScorer:
    """A lexical system that nominates, a network that scores, and the weights that fuse both."""

    parts: HybridParts  # the lexical system and the network
    fusion: Fusion  # the weights

    @property
    def lexical(self) -> WordEvidence:
        """The lexical system."""
        return self.parts.lexical

    @property
    def network(self) -> nn.Module | None:
        """The network; None where an exported one scores."""
        return self.parts.scorer.network

    @property
    def batch(self) -> int:
        """A multiple of the network's batch, so that the lexical system gets many documents at a time."""
        batch = self.parts.scorer.batch
        return batch * max(1, _DOCUMENTS_AT_A_TIME // batch)

    def candidates(self, tokens: Ragged) -> np.ndarray:
        """Return the labels (N, C) that the lexical system nominates."""
        return self.lexical.top(tokens, self.parts.count)[0]

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the nominated labels, or the given candidates (N, C)."""
        tokens = SharedDocuments(tokens)
        if candidates is None:
            candidates, lexical = self.lexical.top(tokens, self.parts.count)
        else:
            ranked = self.lexical.top(tokens, len(self.parts.frequency))
            lexical = select_log_odds(*ranked, candidates)
        features, scored = self.parts.features(tokens, candidates, lexical)
        return replace(scored, log_odds=self.fusion(features))
