"""Propensity-scored metrics: a hit on a rare label is worth more (Jain, Prabhu and Varma, 2016).

A rare label is often missing from documents it fits, so its known occurrences are weighted higher.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.ranked import JudgedRankings, check_positive_integer

A, B = 0.55, 1.5


def training_examples(labels: np.ndarray, train_counts: np.ndarray) -> np.ndarray:
    """Return `train_counts` (n,) of each label, of any shape; 0 for ids that the model does not know."""
    known = (labels >= 0) & (labels < len(train_counts))
    counts = np.zeros(labels.shape, dtype=np.int64)
    counts[known] = train_counts[labels[known]]
    return counts


def inverse_propensities(examples: np.ndarray, train_size: int, a: float = A, b: float = B) -> np.ndarray:
    """Return 1/p = 1 + C (N_l + B)^-A, with C = (ln N - 1)(B + 1)^A.

    This is the worth of a hit on a label with N_l examples, of any shape, out of N training documents. Fewer
    than three of these would make C negative; it is then 0, and all labels count equally.

    Example:
        >>> inverse_propensities(np.array([0, 10, 1000]), train_size=15_000).round(2)
        array([12.41,  4.72,  1.32])
    """
    check_positive_integer("train_size", train_size)
    if (np.asarray(examples) < 0).any():
        raise DataError("`train_counts` must not be negative.")
    c = max(np.log(train_size) - 1, 0.0) * (b + 1) ** a
    return 1 + c * (examples + b) ** -a


def propensity_scored(
    judged: JudgedRankings, train_counts: np.ndarray, train_size: int, cutoffs: Sequence[int]
) -> dict[str, float]:
    """Return PSP@k and PSnDCG@k, as fractions of the best attainable ranking.

    As usual in the field, the gains are averaged over the documents first and divided afterwards. Before
    that, PSnDCG's gains are divided by each document's plain ideal DCG over min(k, |y|) labels.
    """
    depth = max(cutoffs)
    worth = inverse_propensities(training_examples(judged.rankings[:, :depth], train_counts), train_size)
    gained = np.where(judged.hits[:, :depth], worth, 0.0)  # (N, min(K, depth))
    attainable = _best_gains(judged, train_counts, train_size, depth)  # (N, depth)
    discounts = 1 / np.log2(np.arange(2, depth + 2))  # (depth,)
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])  # (depth + 1,) by number of labels

    figures = {}
    for k in cutoffs:
        figures[f"PSP@{k}"] = float(gained[:, :k].sum() / attainable[:, :k].sum())
    for k in cutoffs:
        norm = ideal[np.minimum(judged.true_counts, k)]  # (N,)
        reached, best = (
            (gains[:, :k] @ discounts[: gains[:, :k].shape[1]] / norm).mean()
            for gains in (gained, attainable)
        )
        figures[f"PSnDCG@{k}"] = float(reached / best)
    return figures


def _best_gains(judged: JudgedRankings, train_counts: np.ndarray, train_size: int, depth: int) -> np.ndarray:
    """Return (N, depth) weights of each document's true labels, largest first, padded with zeros."""
    worth = inverse_propensities(training_examples(judged.true_labels, train_counts), train_size)  # (T,)
    order = np.lexsort((-worth, judged.true_documents))
    counts = judged.true_counts
    # Pairs are sorted by document, so a pair's rank is its distance from the document's first.
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)  # (T,)
    inside = rank < depth
    best = np.zeros((len(counts), depth))
    best[judged.true_documents[inside], rank[inside]] = worth[order][inside]
    return best
