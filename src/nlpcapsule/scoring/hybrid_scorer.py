"""Score the labels that a lexical system nominates, fusing its log-odds with a network's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.bag_of_words import SharedDocuments
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.scoring.background import in_background
from nlpcapsule.scoring.fusion import UNFITTED, CandidateFeatures, Fusion
from nlpcapsule.scoring.lexical_scorer import select_log_odds
from nlpcapsule.scoring.scorer import LabelScorer, ReadsFirst, Scores
from nlpcapsule.threads import thread_count

if TYPE_CHECKING:
    from torch import nn

CANDIDATES = 200  # nominated labels per document by default
_DOCUMENTS_AT_A_TIME = 1_000


@dataclass(frozen=True, eq=False)
class HybridScorer:
    """A lexical system that nominates, a network that scores, and the weights that fuse both."""

    lexical: FittedEvidence  # nominates candidates and scores them by their words
    scorer: LabelScorer  # the network
    frequency: np.ndarray  # (n,) of each label, as `label_frequency` returns it
    count: int = CANDIDATES  # candidates per document
    fusion: Fusion = UNFITTED  # the weights

    @property
    def network(self) -> nn.Module | None:
        """The network; None where an exported one scores."""
        return self.scorer.network

    @property
    def batch(self) -> int:
        """A multiple of the network's batch, so that the lexical system gets many documents at a time."""
        return self.scorer.batch * max(1, _DOCUMENTS_AT_A_TIME // self.scorer.batch)

    def candidates(self, tokens: Ragged) -> np.ndarray:
        """Return the labels (N, C) that the lexical system nominates."""
        return self.lexical.top(tokens, self.count)[0]

    def features(
        self, tokens: Ragged, candidates: np.ndarray, lexical: np.ndarray
    ) -> tuple[CandidateFeatures, Scores]:
        """Return the features of candidates (N, C) that the fusion weights combine, and the network's scores.

        `lexical` (N, C) is the lexical system's log-odds of the candidates.
        """
        scored = self.scorer.score(tokens, candidates)
        others = self._other_features(tokens, candidates)
        return CandidateFeatures(scored.log_odds, lexical, **others), scored

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the nominated labels, or the given candidates (N, C)."""
        tokens, scorer = SharedDocuments(tokens), self.scorer
        if candidates is not None:
            ranked = self.lexical.top(tokens, len(self.frequency))
            features, scored = self.features(tokens, candidates, select_log_odds(*ranked, candidates))
        elif isinstance(scorer, ReadsFirst) and 0 < len(tokens) < thread_count():
            # Reading and scoring each take about as long as what a background thread computes meanwhile.
            nominating = in_background(self.lexical.top, tokens, self.count)
            read = scorer.read(tokens)
            candidates, lexical = nominating.result()
            others = in_background(self._other_features, tokens, candidates)
            scored = scorer.score_read(read, candidates)
            features = CandidateFeatures(scored.log_odds, lexical, **others.result())
        else:
            features, scored = self.features(tokens, *self.lexical.top(tokens, self.count))
        return replace(scored, log_odds=self.fusion(features))

    def _other_features(self, tokens: Ragged, candidates: np.ndarray) -> dict[str, Any]:
        """Return the features of candidates (N, C) that need no log-odds, by name."""
        shares, nearest = self.lexical.shares(tokens, candidates)
        return {
            "shares": shares,
            "nearest": nearest,
            "frequency": self.fusion.frequency(self.frequency[candidates]),
            "names": self.lexical.names(tokens, candidates),
        }
