"""Find out what each routing iteration contributes to the labels of documents.

Every document is ranked as if it had stopped after its first, its second, … its last iteration. Two rankings
differ in the top label, in which labels are among the first five, or in neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.report.routing import override_settings, rank_by_network, routed_settings, with_exactly
from nlpcapsule.scoring.documents import LabelRankings
from nlpcapsule.scoring.models import LabelModel

TOP = 5

# Documents (rows) and a number of iterations → their labels, each routed for exactly that number.
RankWith = Callable[[np.ndarray, int], LabelRankings]


def effects_of_iterations(
    model: LabelModel, encoded: EncodedDocuments, iterations: np.ndarray
) -> IterationEffects:
    """Return what each iteration changed in the first labels of documents that take (N,) iterations."""
    settings = routed_settings(model)
    candidates = model.scorer.candidates(encoded.tokens)

    def rank_with(rows: np.ndarray, number: int) -> LabelRankings:
        chosen = None if candidates is None else candidates[rows]
        with override_settings(model, with_exactly(settings, number)):
            return rank_by_network(model, encoded.take(rows), chosen, TOP)

    return iteration_effects(iterations, rank_with, encoded.labels)


@dataclass(frozen=True)
class IterationEffects:
    """The first K labels of N documents after each of their iterations, at most T."""

    iterations: np.ndarray  # (N,) that each document took
    labels: np.ndarray  # (N, T, K) ids, best first; -1 after a document has stopped
    scores: np.ndarray  # (N, T, K) their probabilities; NaN after a document has stopped
    is_true: np.ndarray  # (N, T, K) whether a label is one of the document's
    has_truth: np.ndarray  # (N,) whether a document has true labels


@dataclass(frozen=True)
class Changes:
    """The number of documents in which a later ranking differs from an earlier one."""

    documents: int  # that have both rankings
    top_label: int  # whose top label changed
    top_label_better: int  # became a true one
    top_label_worse: int  # was a true one and no longer is
    first_labels: int  # with a different set of first K labels
    first_labels_better: int  # with more true labels among them
    first_labels_worse: int  # with fewer


def iteration_effects(
    iterations: np.ndarray, rank_with: RankWith, truth: Ragged, top: int = TOP
) -> IterationEffects:
    """Rank documents after each of the (N,) iterations they take, up to the first `top` labels.

    `rank_with` ranks some of the documents with a given number of iterations.
    """
    rankings = []
    for iteration in range(1, int(iterations.max()) + 1):
        rows = np.flatnonzero(iterations >= iteration)
        rankings.append((rows, rank_with(rows, iteration)))
    width = min(top, rankings[0][1].labels.shape[1])
    labels = np.full((len(iterations), len(rankings), width), -1, dtype=np.int64)
    scores = np.full(labels.shape, np.nan, dtype=np.float32)
    for position, (rows, ranked) in enumerate(rankings):
        labels[rows, position] = ranked.labels[:, :width]
        scores[rows, position] = ranked.scores[:, :width]
    own = [truth[row] for row in range(len(iterations))]
    return IterationEffects(
        iterations,
        labels,
        scores,
        np.stack([np.isin(labels[row], ids) for row, ids in enumerate(own)]),
        np.array([len(ids) > 0 for ids in own]),
    )


def changes_by_iteration(effects: IterationEffects) -> dict[int, Changes]:
    """Return what iteration 2, 3, … changed in the documents that took it."""
    return {
        iteration: _changes(effects, iteration, iteration - 2, iteration - 1)
        for iteration in range(2, effects.labels.shape[1] + 1)
    }


def changes_by_all_iterations(effects: IterationEffects) -> Changes:
    """Return what all iterations after the first changed together, for documents with at least two."""
    return _changes(effects, 2, 0, effects.iterations[effects.iterations >= 2] - 1)


def _changes(effects: IterationEffects, fewest: int, before: int, after: int | np.ndarray) -> Changes:
    """Compare two rankings of each document with at least `fewest` iterations, given their positions."""
    rows = np.flatnonzero(effects.iterations >= fewest)
    old, new = effects.labels[rows, before], effects.labels[rows, after]  # (R, K)
    was_true, is_true = effects.is_true[rows, before], effects.is_true[rows, after]  # (R, K)
    hits = is_true.sum(axis=1) - was_true.sum(axis=1)  # (R,)
    return Changes(
        documents=len(rows),
        top_label=int((old[:, 0] != new[:, 0]).sum()),
        top_label_better=int((~was_true[:, 0] & is_true[:, 0]).sum()),
        top_label_worse=int((was_true[:, 0] & ~is_true[:, 0]).sum()),
        first_labels=int((np.sort(old, axis=1) != np.sort(new, axis=1)).any(axis=1).sum()),
        first_labels_better=int((hits > 0).sum()),
        first_labels_worse=int((hits < 0).sum()),
    )
