"""Metrics of ranked labels, as fractions of 1.

Ranking metrics are computed on documents that have labels. F1 and calibration use all documents: every label
predicted for a document without labels is wrong.

Propensity-scored metrics: a rare label is often missing from documents it fits, so a hit on it is worth more
(Jain, Prabhu and Varma, 2016).
"""

from collections.abc import Sequence

import numpy as np

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.ranked import (
    NO_LABEL,
    JudgedRankings,
    TrueLabels,
    check_positive_integer,
    judge_rankings,
    measure_each,
)
from nlpcapsule.evaluation.thresholds import f1_at_threshold

CUTOFFS = (1, 3, 5)
A, B = 0.55, 1.5  # of propensities
ROUNDING = 1e-6  # a capsule's length in float32 may exceed 1 by this much
PAPER_RETRIEVED = 50  # depth at which the released code of NLP-Capsule looks for hits
# Training documents per label: from, to (inclusive), and the name of the band.
FREQUENCY_BANDS = ((0, 0, "0"), (1, 10, "1-10"), (11, 50, "11-50"), (51, np.inf, ">50"))


def label_metrics(
    rankings: np.ndarray,
    scores: np.ndarray | None,
    truth: TrueLabels,
    train_counts: np.ndarray,
    train_size: int,
    threshold: float | None = None,
    unused: np.ndarray | None = None,
) -> dict[str, float]:
    """Return all metrics of a ranking of labels.

    - "P@k", "nDCG@k" (ideal over min(k, |y|) labels), "R-precision@k" (hits in the top k / min(k, |y|)),
      "PSP@k", "PSnDCG@k" and "paper-nDCG@k", for k = 1, 3, 5.
    - "recall@5 (0 examples)", "(1-10 examples)", "(11-50 examples)", "(>50 examples)": the share of true
      labels with that many training documents that are ranked among the first five. A band without true
      labels is left out.
    - "recall@5 among unused labels", if these were ranked among each other: the share of true labels without
      a training document that are among the first five of those.
    - "micro-F1" and "macro-F1", if a threshold is given; "ECE@5", if scores are given.
    - "documents" (those with labels, which all metrics but F1 and ECE use), "documents without labels",
      and "unseen true labels": the number of (document, label) pairs whose label has no training document.

    Rankings, their probabilities and the true labels are as in `judge_rankings`; without scores, the metrics
    that need them are left out. `train_counts` (n_labels,) are the training documents per label, `train_size`
    is their total, and `unused` (N, U) ranks only the labels without a training document.
    """
    judged = judge_rankings(rankings, truth, scores)
    train_counts = np.asarray(train_counts)
    if judged.rankings.size and (largest := judged.rankings.max()) >= len(train_counts):
        expected = f"labels below {len(train_counts)}, the length of `train_counts`"
        raise DataError(f"`rankings` must hold {expected}. Got {largest} instead.")
    figures = {name: float(values.mean()) for name, values in _precision_and_ndcg(judged, CUTOFFS).items()}
    figures |= {f"R-precision@{k}": float(r_precision(judged, k).mean()) for k in CUTOFFS}
    figures |= propensity_scored(judged, train_counts, train_size, CUTOFFS)
    figures |= {f"paper-nDCG@{k}": float(paper_ndcg(judged, k).mean()) for k in CUTOFFS}
    everywhere = judge_rankings(rankings, truth, scores, every_document=True)
    if threshold is not None:
        figures |= f1_at_threshold(everywhere, threshold)
    figures |= _recall_by_frequency(judged, train_counts)
    if unused is not None:
        figures |= _recall_among_unused(judge_rankings(unused, truth), train_counts)
    if everywhere.scores is not None:
        returned = everywhere.rankings[:, :5] != NO_LABEL  # (N, 5)
        if returned.any():
            stated, right = everywhere.scores[:, :5][returned], everywhere.hits[:, :5][returned]
            figures["ECE@5"] = expected_calibration_error(stated, right)
    figures["documents"] = len(judged.rankings)
    figures["documents without labels"] = judged.without_labels
    figures["unseen true labels"] = int((training_examples(judged.true_labels, train_counts) == 0).sum())
    return figures


def per_document_metrics(
    rankings: np.ndarray, truth: TrueLabels, cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, np.ndarray]:
    """Return P@k and nDCG@k (N_scored,) of each document that has labels, in the documents' order.

    Pass two systems' values for the same documents to `paired_bootstrap`.
    """
    for k in cutoffs:
        check_positive_integer("k", k)
    return _precision_and_ndcg(judge_rankings(rankings, truth), cutoffs)


def r_precision(judged: JudgedRankings, k: int) -> np.ndarray:
    """Return (N,) hits among the first k, divided by the possible number: min(k, |y|)."""
    check_positive_integer("k", k)
    return judged.hits[:, :k].sum(axis=1) / np.minimum(judged.true_counts, k)


def paper_ndcg(judged: JudgedRankings, k: int) -> np.ndarray:
    """Return (N,) nDCG@k as in the paper's tables, whose ideal has only the hits among the top 50.

    True labels that were not retrieved are ignored, so it is never below nDCG@k and only useful for
    comparison with those tables. Without a hit it is 0.
    """
    check_positive_integer("k", k)
    retrieved = judged.hits[:, :PAPER_RETRIEVED]  # (N, <= 50)
    discounts = 1 / np.log2(np.arange(2, k + 2))  # (k,)
    first = retrieved[:, :k]
    gained = first @ discounts[: first.shape[1]]  # (N,)
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(retrieved.sum(axis=1), k)]  # (N,)
    return np.divide(gained, ideal, out=np.zeros(len(gained)), where=ideal > 0)


def _precision_and_ndcg(judged: JudgedRankings, cutoffs: Sequence[int]) -> dict[str, np.ndarray]:
    depth = max(cutoffs)  # lower ranks change neither
    ranked = [[label for label in row if label != NO_LABEL] for row in judged.rankings[:, :depth].tolist()]
    ends = np.cumsum(judged.true_counts)[:-1]
    relevant = [labels.tolist() for labels in np.split(judged.true_labels, ends)]
    return measure_each([f"{name}@{k}" for name in ("P", "nDCG") for k in cutoffs], relevant, ranked)


def _recall_by_frequency(judged: JudgedRankings, train_counts: np.ndarray) -> dict[str, float]:
    """Return recall among the first five for the true labels of each band of training frequency."""
    of_truth = training_examples(judged.true_labels, train_counts)  # (T,)
    of_hits = training_examples(judged.rankings[:, :5][judged.hits[:, :5]], train_counts)  # (hits,)
    figures = {}
    for low, high, name in FREQUENCY_BANDS:
        true, found = (int(((low <= each) & (each <= high)).sum()) for each in (of_truth, of_hits))
        if true:
            figures[f"recall@5 ({name} examples)"] = found / true
    return figures


def _recall_among_unused(judged: JudgedRankings, train_counts: np.ndarray) -> dict[str, float]:
    """Return recall among the first five for true labels without training documents, ranked separately."""
    true = int((training_examples(judged.true_labels, train_counts) == 0).sum())
    return {"recall@5 among unused labels": float(judged.hits[:, :5].sum() / true)} if true else {}


def expected_calibration_error(probabilities: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Return the mean distance of stated probability (M,) and observed accuracy, over bins of equal mass.

    Equal probabilities share their mean correctness, so that the order of the input does not matter if a
    bin's edge falls between them. There are M bins if there are fewer values.

    Example:
        >>> expected_calibration_error(np.array([0.5, 0.5, 1.0]), np.array([1, 0, 1]))
        0.0
    """
    check_positive_integer("bins", bins)
    probabilities = np.asarray(probabilities, dtype=np.float64)
    correct = np.asarray(correct, dtype=np.float64)
    if probabilities.ndim != 1 or probabilities.shape != correct.shape:
        found = f"Got shapes {probabilities.shape} and {correct.shape} instead."
        raise DataError(f"`probabilities` and `correct` must be vectors of one length. {found}")
    if not len(probabilities):
        raise DataError("no probabilities were given, so there is no calibration to measure")
    if not ((probabilities >= -ROUNDING) & (probabilities <= 1 + ROUNDING)).all():  # rejects NaN, too
        expected = "must lie between 0 and 1, without NaN; leave scores out if they do not."
        raise DataError(f"`probabilities` {expected}")

    _, group = np.unique(probabilities, return_inverse=True)
    accuracy = np.bincount(group, weights=correct) / np.bincount(group)  # (distinct,)
    gaps = np.sort(probabilities) - np.repeat(accuracy, np.bincount(group))  # (M,) ascending in probability
    parts = np.array_split(gaps, min(bins, len(gaps)))
    return float(sum(abs(part.sum()) for part in parts) / len(gaps))


def training_examples(labels: np.ndarray, train_counts: np.ndarray) -> np.ndarray:
    """Return `train_counts` (n,) of each label, of any shape; 0 for ids that the model does not know."""
    known = (labels >= 0) & (labels < len(train_counts))
    counts = np.zeros(labels.shape, dtype=np.int64)
    counts[known] = train_counts[labels[known]]
    return counts


def inverse_propensities(examples: np.ndarray, train_size: int) -> np.ndarray:
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
    c = max(np.log(train_size) - 1, 0.0) * (B + 1) ** A
    return 1 + c * (examples + B) ** -A


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

    figures = {f"PSP@{k}": float(gained[:, :k].sum() / attainable[:, :k].sum()) for k in cutoffs}
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
    best = np.zeros((len(judged.rankings), depth))
    for row, own in zip(best, np.split(worth, np.cumsum(judged.true_counts)[:-1]), strict=True):
        largest = np.sort(own)[::-1][:depth]
        row[: len(largest)] = largest
    return best
