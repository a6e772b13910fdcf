"""Rank the labels of encoded documents by their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.scoring.network_scorer import join_agreement
from nlpcapsule.scoring.scorer import LabelScorer, Scores

RANKED = 50  # labels kept per document for evaluation; the paper's nDCG looks at the first 50


@dataclass(frozen=True)
class LabelRankings:
    """Ranked labels of N documents; `iterations` and `agreement` are those of `Scores`."""

    labels: np.ndarray  # (N, K) int64 label ids, best first
    scores: np.ndarray  # (N, K) float32 probabilities
    iterations: np.ndarray | None = None  # (N,)
    agreement: np.ndarray | None = None  # (N, T)
    unused: LabelRankings | None = None  # labels that no training document has, ranked among each other


def rank_scores(scores: Scores, top_k: int, unused: np.ndarray | None = None) -> LabelRankings:
    """Rank labels by their log-odds; ties keep the order of the scores.

    `unused` (n,) is True for labels that no training document has, which are also ranked among each other.
    """
    apart = None
    if unused is not None and unused.any():
        asked = np.broadcast_to(unused[scores.labels], scores.log_odds.shape)  # (N, C)
        fewest = int(asked.sum(axis=1).min(initial=top_k))
        apart = _best(scores.labels, np.where(asked, scores.log_odds, -np.inf), min(top_k, fewest))
    best = _best(scores.labels, scores.log_odds, top_k)
    return LabelRankings(best.labels, best.scores, scores.iterations, scores.agreement, apart)


def rank_documents(
    scorer: LabelScorer,
    tokens: Ragged,
    top_k: int,
    *,
    candidates: np.ndarray | None = None,
    unused: np.ndarray | None = None,
    advance: Callable[[int], None] | None = None,
) -> LabelRankings:
    """Score documents, some at a time, and rank the `top_k` best labels of each, or all if there are fewer.

    Ranks the labels that the scorer chooses, or the given `candidates` (N, C). `unused` is as in
    `rank_scores`; `advance` gets the number of documents done since its last call.
    """
    rows, parts = [], []
    for chosen, scores in score_in_parts(scorer, tokens, candidates, top_k):
        rows.append(chosen)
        parts.append(rank_scores(scores, top_k, unused))
        if advance is not None:
            advance(len(chosen))
    if not parts:
        return LabelRankings(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
    return _joined(parts, np.argsort(np.concatenate(rows), kind="stable"))


def score_in_parts(
    scorer: LabelScorer, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None
) -> Iterator[tuple[np.ndarray, Scores]]:
    """Yield the rows (B,) and scores of a few documents at a time, which keeps memory bounded.

    Documents of similar length are batched together.
    """
    order = np.argsort(tokens.lengths, kind="stable")
    for start in range(0, len(order), scorer.batch):
        rows = order[start : start + scorer.batch]
        yield rows, scorer.score(tokens.take(rows), None if candidates is None else candidates[rows], top_k)


def _best(labels: np.ndarray, log_odds: np.ndarray, top_k: int) -> LabelRankings:
    best = top_columns(log_odds, top_k)  # (N, K)
    return LabelRankings(
        labels[best] if labels.ndim == 1 else np.take_along_axis(labels, best, axis=1),
        expit(np.take_along_axis(log_odds, best, axis=1)).astype(np.float32),
    )


def _joined(parts: Sequence[LabelRankings], order: np.ndarray) -> LabelRankings:
    """Concatenate the rankings of all parts, in the order of the input."""
    iterations = [part.iterations for part in parts if part.iterations is not None]
    agreement = [part.agreement for part in parts if part.agreement is not None]
    unused = [part.unused for part in parts if part.unused is not None]
    kept = min(part.labels.shape[1] for part in parts)  # candidates may contain any number of unused labels
    return LabelRankings(
        np.concatenate([part.labels[:, :kept] for part in parts])[order],
        np.concatenate([part.scores[:, :kept] for part in parts])[order],
        np.concatenate(iterations)[order] if iterations else None,
        join_agreement(agreement)[order] if agreement else None,
        _joined(unused, order) if unused else None,
    )
