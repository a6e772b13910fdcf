"""Ranks the labels of encoded documents by their words alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.ranker import LexicalRanker
from nlpcapsule.scoring.documents import LabelRankings

_CHUNK = 1_000  # documents ranked between two looks at the progress


def rank_lexically(
    ranker: LexicalRanker, tokens: Ragged, top_k: int, on_batch: Callable[[int], None] | None = None
) -> LabelRankings:
    """Ranks labels.

    Args:
        ranker: A fitted lexical system.
        tokens: N rows of token ids.
        top_k: Labels returned per document (fewer where there are fewer).
        on_batch: Told the number of documents done, for progress.
    """
    labels, scores = [], []
    for start in range(0, max(len(tokens), 1), _CHUNK):
        rows = range(start, min(start + _CHUNK, len(tokens)))
        best, log_odds = ranker.top(tokens.take(rows), top_k)
        labels.append(best)
        scores.append(expit(log_odds).astype(np.float32))
        if on_batch:
            on_batch(len(rows))
    return LabelRankings(np.concatenate(labels), np.concatenate(scores))
