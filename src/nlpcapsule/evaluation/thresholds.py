"""Decision thresholds: F1 of the labels whose score reaches one, and tuning on held-out documents."""

from collections import Counter

import numpy as np
from scipy.sparse import csr_matrix

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.ranked import NO_LABEL, JudgedRankings, TrueLabels, judge_rankings


def f1_at_threshold(judged: JudgedRankings, threshold: float) -> dict[str, float]:
    """Return micro and macro F1 of the ranked labels with score >= threshold, by scikit-learn.

    Macro F1 is the mean over the labels that occur in the truth or the predictions, including true labels
    that training never saw, whose F1 is 0.
    """
    from sklearn.metrics import f1_score  # slow to import and only needed here

    if judged.scores is None:
        raise DataError("`scores` are needed to apply a threshold. Got None instead.")
    if np.isnan(threshold):
        raise DataError("`threshold` must be a number. Got nan instead.")
    chosen = (judged.scores >= threshold) & (judged.rankings != NO_LABEL)  # (N, K)
    documents, labels = np.nonzero(chosen)[0], judged.rankings[chosen]
    columns = np.union1d(labels, judged.true_labels)  # (L,)
    # scikit-learn treats a single column as a binary problem; an additional empty one prevents that.
    shape = (len(judged.rankings), len(columns) + 1)

    def indicator(rows: np.ndarray, ids: np.ndarray) -> csr_matrix:
        return csr_matrix((np.ones(len(rows), np.int8), (rows, np.searchsorted(columns, ids))), shape=shape)

    true, predicted = indicator(judged.true_documents, judged.true_labels), indicator(documents, labels)
    averaged = np.arange(len(columns))
    return {
        f"{average}-F1": float(f1_score(true, predicted, labels=averaged, average=average, zero_division=0))
        for average in ("micro", "macro")
    }


def best_threshold(
    scores: np.ndarray, rankings: np.ndarray, truth: TrueLabels, objective: str | float = "micro-F1"
) -> float:
    """Return the best score as a threshold for all labels, tuned on held-out documents.

    Every distinct score is tried. Ties go to the highest, which returns the fewest labels. Scores are (N, K),
    rankings (N, K) label ids, best first, -1 = none left; labels predicted for a document without any are
    wrong.

    The objective is "micro-F1", "macro-F1", or a precision: return as many labels as possible at this
    precision; if no threshold reaches it, use the nearest.
    """
    judged = judge_rankings(rankings, truth, scores, every_document=True)
    returned = judged.rankings != NO_LABEL  # (N, K)
    if not returned.any():
        raise DataError("the rankings are empty, so no threshold can be chosen")
    assert judged.scores is not None
    scores, labels, hits = judged.scores[returned], judged.rankings[returned], judged.hits[returned]
    order = np.argsort(-scores, kind="stable")
    scores, labels, hits = scores[order], labels[order], hits[order]  # (M,) each, best first

    accepted, found = np.arange(1, len(hits) + 1), np.cumsum(hits)  # (M,) after the first 1, 2, ..., M pairs
    if objective == "micro-F1":
        values = 2 * found / (accepted + len(judged.true_labels))
    elif objective == "macro-F1":
        values = _macro_f1_sweep(labels, hits, judged.true_labels)
    else:  # the number of accepted pairs where they reach the precision, elsewhere the shortfall, negative
        reached = found / accepted
        values = np.where(reached >= float(objective) - 1e-12, accepted, reached - float(objective))
    last_of_ties = np.append(scores[1:] != scores[:-1], True)  # a threshold accepts a tie as a whole
    return float(scores[last_of_ties][values[last_of_ties].argmax()])


def _macro_f1_sweep(labels: np.ndarray, hits: np.ndarray, true_labels: np.ndarray) -> np.ndarray:
    """Return (M,) macro F1 after accepting the first 1, 2, ..., M pairs.

    Accepting a pair changes only the F1 of its label, so the sum of F1s is a running sum of changes.
    """
    positives = Counter(true_labels.tolist())
    f1: dict[int, float] = dict.fromkeys(positives, 0.0)  # false positives add labels to the mean
    accepted, found, total, values = Counter[int](), Counter[int](), 0.0, []
    for label, is_hit in zip(labels.tolist(), hits.tolist(), strict=True):
        accepted[label] += 1
        found[label] += is_hit
        reached = 2 * found[label] / (accepted[label] + positives[label])
        total += reached - f1.get(label, 0.0)
        f1[label] = reached
        values.append(total / len(f1))
    # Rounded, so that rounding errors of the running sum do not decide between equally good thresholds.
    return np.round(values, 12)
