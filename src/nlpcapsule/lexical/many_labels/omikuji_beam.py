"""Rank labels with omikuji's trees: documents in parallel, in a beam that reaches as many labels as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logit

from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.lexical.many_labels.threaded import threaded
from nlpcapsule.threads import thread_count

KEEPS_BEAM = 100  # labels of the longest ranking that keeps the beam as it is set; longer ones nominate
# The library's float32 scores reach 0 and 1, whose log-odds are infinite.
_SMALLEST, _LARGEST = 1e-30, 1 - 1e-7
_NOT_REACHED = logit(_SMALLEST) - 1  # log-odds of labels in leaves that the beam did not reach


def top_of_trees(
    trees: Sequence[Any], features: sparse.csr_matrix, beam: int, label_count: int, top_k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best labels (N, K) of documents and the log-odds (N, K) of the mean of the trees' scores.

    A tree's score of a label that it does not name is 0. Labels that no tree names follow by id.

    Args:
        trees: The library's models.
        features: (N, V), a row per document.
        beam: Nodes kept per level, and labels per leaf.
        label_count: n.
        top_k: K, or more than n. Above `KEEPS_BEAM`, a document's beam is doubled until the trees name K
            labels; not if all labels are asked for, which only the widest of beams would reach.
    """
    width = min(top_k, label_count)
    fewest = width if KEEPS_BEAM < top_k < label_count else 0

    def rank(row: int) -> tuple[np.ndarray, np.ndarray]:
        words = slice(features.indptr[row], features.indptr[row + 1])
        pairs = list(zip(features.indices[words].tolist(), features.data[words].tolist(), strict=True))
        return _filled(*_named(trees, pairs, beam, label_count, fewest), width)

    labels = np.empty((features.shape[0], width), dtype=np.int64)
    log_odds = np.empty((features.shape[0], width))
    for row, ranked in enumerate(_in_order(rank, range(len(labels)))):
        labels[row], log_odds[row] = ranked
    return labels, log_odds


def _in_order(rank: Callable[[int], Any], rows: Sequence[int]) -> Iterator[Any]:
    """Yield the results of rows in order, computed in threads: the library works without Python's lock."""
    if thread_count() == 1:
        return map(rank, rows)
    # The library starts its threads at its first call, and not safely if two of ours call it at once.
    return chain(map(rank, rows[:1]), threaded(rank, rows[1:]))


def _named(
    trees: Sequence[Any], pairs: list[tuple[int, float]], beam: int, label_count: int, fewest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels (m,) that trees name for a document, ascending, and their log-odds (m,).

    They are at least `fewest`, unless there are fewer labels in the trees.
    """
    # A tree names the best labels of the best leaves, as many of each as the beam is wide.
    most = min(beam**2, label_count)
    found = [pair for tree in trees for pair in tree.predict(pairs, beam_size=beam, top_k=most)]
    labels, place = np.unique(np.array([label for label, _ in found], dtype=np.int64), return_inverse=True)
    if len(labels) < fewest and beam < label_count:
        return _named(trees, pairs, 2 * beam, label_count, fewest)
    total = np.bincount(place, weights=[score for _, score in found], minlength=len(labels))
    return labels, logit(np.clip(total / len(trees), _SMALLEST, _LARGEST))


def _filled(labels: np.ndarray, log_odds: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the best `width` labels and their log-odds; labels that were not named are the last, by id."""
    best = top_columns(log_odds[None], width)[0]
    missing = width - len(best)
    others = np.setdiff1d(np.arange(width), labels)[:missing] if missing else labels[:0]
    return np.append(labels[best], others), np.append(log_odds[best], np.full(missing, _NOT_REACHED))
