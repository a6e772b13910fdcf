"""Score labels with a lexical system alone."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.ranker import LexicalRanker
from nlpcapsule.scoring.scorer import Scores


@dataclass(frozen=True, eq=False)
class LexicalScorer:
    """A fitted lexical system that ranks labels without a network."""

    ranker: LexicalRanker  # the system
    label_count: int  # n

    batch: ClassVar[int] = 1_000
    network: ClassVar[None] = None

    def candidates(self, tokens: Ragged) -> None:
        """Return None: the system scores all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score the best `top_k` labels, best first, or the given candidates (N, C)."""
        if candidates is not None:
            ranked = self.ranker.top(tokens, self.label_count)
            return Scores(candidates, select_log_odds(*ranked, candidates))
        return Scores(*self.ranker.top(tokens, self.label_count if top_k is None else top_k))


def select_log_odds(labels: np.ndarray, log_odds: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the log-odds (N, C) of candidates (N, C), from those of ranked labels (N, K), best first.

    Candidates that are not ranked get their document's lowest log-odds.

    Example:
        >>> select_log_odds(np.array([[7, 2]]), np.array([[3.0, 1.0]]), np.array([[2, 5, 7]])).tolist()
        [[1.0, 1.0, 3.0]]
    """
    width = 1 + max(labels.max(initial=0), candidates.max(initial=0))
    by_label = np.repeat(log_odds[:, -1:], width, axis=1)  # (N, n)
    np.put_along_axis(by_label, labels, log_odds, axis=1)
    return np.take_along_axis(by_label, candidates, axis=1)
