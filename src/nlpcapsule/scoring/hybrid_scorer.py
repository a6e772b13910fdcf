"""Score the labels that a lexical system nominates, fusing its log-odds with a network's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.bag_of_words import SharedDocuments
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.scoring.fusion import UNFITTED, CandidateFeatures, Fusion
from nlpcapsule.scoring.lexical_scorer import select_log_odds
from nlpcapsule.scoring.scorer import BeginScoring, LabelScorer, ReadsAhead, Scores

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
        self,
        tokens: Ragged,
        candidates: np.ndarray,
        lexical: np.ndarray,
        begin: BeginScoring | None = None,
    ) -> tuple[CandidateFeatures, Scores]:
        """Return the features of candidates (N, C) that the fusion weights combine, and the network's scores.

        `lexical` (N, C) is the lexical system's log-odds of the candidates, and `begin` what `read_ahead` of
        the network's scorer returned, if it reads the documents already.
        """
        finish = begin(candidates) if begin else partial(self.scorer.score, tokens, candidates)
        shares, nearest = self.lexical.shares(tokens, candidates)
        names = self.lexical.names(tokens, candidates)
        frequency = self.fusion.frequency(self.frequency[candidates])
        scored = finish()
        return CandidateFeatures(scored.log_odds, lexical, shares, nearest, frequency, names), scored

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the nominated labels, or the given candidates (N, C)."""
        tokens = SharedDocuments(tokens)
        begin = self.scorer.read_ahead(tokens) if isinstance(self.scorer, ReadsAhead) else None
        if candidates is None:
            candidates, lexical = self.lexical.top(tokens, self.count)
        else:
            ranked = self.lexical.top(tokens, len(self.frequency))
            lexical = select_log_odds(*ranked, candidates)
        features, scored = self.features(tokens, candidates, lexical, begin)
        return replace(scored, log_odds=self.fusion(features))
