"""Rankings with their hits, which all metrics are computed from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import TypeAlias

import numpy as np

from nlpcapsule.errors import DataError

NO_LABEL = -1  # in a ranking: no label left
TrueLabels: TypeAlias = Sequence[Sequence[int] | np.ndarray]


@dataclass(frozen=True, slots=True)
class JudgedRankings:
    """Rankings with their hits, for the N documents that have at least one true label, or for all."""

    rankings: np.ndarray  # (N, K) label ids, best first; -1 once none is left
    scores: np.ndarray | None  # (N, K) their probabilities, or None
    hits: np.ndarray  # (N, K) True where the ranked label is a true one
    true_documents: np.ndarray  # (T,) the row of each (document, true label) pair, ascending
    true_labels: np.ndarray  # (T,) the label of each pair; ids unknown to the model are unseen labels
    without_labels: int  # number of given documents without a true label

    @property
    def true_counts(self) -> np.ndarray:
        """(N,) number of true labels of each document."""
        return np.bincount(self.true_documents, minlength=len(self.rankings))


def judge_rankings(
    rankings: np.ndarray, truth: TrueLabels, scores: np.ndarray | None = None, every_document: bool = False
) -> JudgedRankings:
    """Check the input and mark the hits.

    Rankings are (N, K) label ids, best first, each row without repeats; -1 = none left. A true id that no
    ranking can hold (negative, or past the model's labels) counts as true and can only be missed.

    With `every_document`, documents without labels are kept as well. All their rankings are equally good, but
    every label predicted for them is wrong. If no document has a label, or the input is not as described, it
    is a DataError.
    """
    rankings = np.asarray(rankings)
    _check_rankings(rankings, len(truth))
    if scores is not None:
        scores = np.asarray(scores)
        _check_scores(scores, rankings)

    label_sets = [{int(label) for label in labels} for labels in truth]
    labelled = np.array([bool(labels) for labels in label_sets], dtype=bool)  # (documents,)
    if not labelled.any():
        problem = "no document has a label, so there is nothing to score"
        raise DataError(problem, hint="check the labels' column")
    if not every_document:
        label_sets = [labels for labels in label_sets if labels]
        rankings, scores = rankings[labelled], None if scores is None else scores[labelled]
    true_documents = np.repeat(np.arange(len(label_sets)), [len(labels) for labels in label_sets])  # (T,)
    true_labels = np.fromiter(chain.from_iterable(map(sorted, label_sets)), dtype=np.int64)  # (T,)
    rows = zip(rankings.tolist(), label_sets, strict=True)
    found = [[label in own for label in row] for row, own in rows]
    hits = np.array(found, dtype=bool).reshape(rankings.shape) & (rankings != NO_LABEL)
    return JudgedRankings(rankings, scores, hits, true_documents, true_labels, int((~labelled).sum()))


def measure_each(
    measures: Sequence[str], relevant: Sequence[Iterable[int]], ranked: Sequence[Iterable[int]]
) -> dict[str, np.ndarray]:
    """Score each of N queries with ir-measures ("P@5", "nDCG@5", "AP", "RR"): for each measure, (N,) values.

    The retrieved ids of each query are best first; there may be none.
    """
    import ir_measures  # imported here, so that the rest of the package works without it

    parsed = {ir_measures.parse_measure(name): name for name in measures}
    qrels = {str(query): {str(item): 1 for item in items} for query, items in enumerate(relevant)}
    # Pass the rank as a strictly decreasing score, so that the library's order of ties does not matter.
    scored = ({str(item): -float(rank) for rank, item in enumerate(items)} for items in ranked)
    run = {str(query): items for query, items in enumerate(scored) if items}
    values = {name: np.zeros(len(relevant)) for name in measures}
    for metric in ir_measures.iter_calc(list(parsed), qrels, run):
        values[parsed[metric.measure]][int(metric.query_id)] = metric.value
    return values


def check_positive_integer(name: str, value: object) -> None:
    """Reject anything but 1, 2, 3, ..."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise DataError(f"`{name}` must be a positive integer. Got {value!r} instead.")


def _check_rankings(rankings: np.ndarray, documents: int) -> None:
    if rankings.ndim != 2 or not np.issubdtype(rankings.dtype, np.integer):
        found = f"Got shape {rankings.shape} of {rankings.dtype} instead."
        raise DataError(f"`rankings` must be a matrix of integers, (documents, ranks). {found}")
    if len(rankings) != documents:
        raise DataError(f"`rankings` has {len(rankings)} rows, but `truth` has {documents} documents.")
    none_left = rankings == NO_LABEL  # (N, K)
    if (rankings < NO_LABEL).any() or (none_left[:, :-1] & ~none_left[:, 1:]).any():
        raise DataError("`rankings` must hold label ids >= 0, and after them only -1 (none left).")
    ascending = np.sort(rankings, axis=1)
    repeated = (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != NO_LABEL)
    if repeated.any():
        row = int(np.flatnonzero(repeated.any(axis=1))[0])
        raise DataError(f"`rankings` must not repeat a label within a row. Row {row} does.")


def _check_scores(scores: np.ndarray, rankings: np.ndarray) -> None:
    if scores.shape != rankings.shape:
        expected = f"must have the shape of `rankings`, {rankings.shape}"
        raise DataError(f"`scores` {expected}. Got {scores.shape} instead.")
    invalid = np.isnan(scores) & (rankings != NO_LABEL)  # values after -1 are never read
    if invalid.any():
        row = int(np.flatnonzero(invalid.any(axis=1))[0])
        raise DataError(f"`scores` must not contain NaN. Row {row} does.")
