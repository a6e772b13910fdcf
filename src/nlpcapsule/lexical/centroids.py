"""Nominate labels by the cosine with their centroids, through an inverted index.

    c_j ∝ Σ_{i with label j} x_i,   its largest weights alone, scaled to length 1;   score_j = ⟨x, c_j⟩

x: tf-idf rows of length 1. There is nothing to learn, so that rare labels are found as well as frequent ones.
A document is compared only with the labels that share a word with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import joblib
import numpy as np
from scipy import sparse

from nlpcapsule.lexical.arrays import check_array

_WORDS = 50  # of a centroid: more cost time and find hardly more labels
_LABELS_AT_A_TIME = 4_096
_SCORES_AT_A_TIME = 2**22  # which bounds memory


@dataclass(frozen=True, eq=False)
class Centroids:
    """The pruned centroid of every label."""

    weights: sparse.csr_matrix  # (n, V) float32, sparse, rows of length 1 (or empty)

    @classmethod
    def fit(cls, features: sparse.csr_matrix, targets: sparse.csr_matrix) -> Self:
        """Sum the rows (N, V) of each label's documents (N, n), some labels at a time."""
        by_label = targets.T.tocsr()  # (n, N)
        starts = range(0, by_label.shape[0], _LABELS_AT_A_TIME)
        blocks = [largest_entries(by_label[start : start + _LABELS_AT_A_TIME] @ features) for start in starts]
        return cls(_unit_rows(sparse.vstack(blocks, format="csr")))

    @cached_property
    def _labels_by_word(self) -> sparse.csr_matrix:
        """(V, n)."""
        return self.weights.T.tocsr()

    def nominate(self, features: sparse.csr_matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels (N, K) int32 nearest to the rows, nearest first, and their cosines (N, K).

        Labels without a common word follow, in the order of their ids.
        """
        documents, label_count = features.shape[0], self.weights.shape[0]
        width = min(count, label_count)
        labels = np.empty((documents, width), dtype=np.int32)
        cosines = np.zeros((documents, width), dtype=np.float32)
        index = self._labels_by_word  # before the threads ask for it
        size = max(1, _SCORES_AT_A_TIME // label_count)

        def fill(start: int) -> None:
            scores = features[start : start + size] @ index
            for row, (ids, values) in enumerate(_rows(scores), start):
                labels[row], cosines[row] = _nearest(ids, values, width)

        # Threads share the index: scipy computes products without Python's lock.
        with ThreadPoolExecutor(joblib.cpu_count()) as threads:
            for _ in threads.map(fill, range(0, documents, size)):
                pass
        return labels, cosines

    def check(self, width: int, label_count: int) -> None:
        """Raise `ModelFolderError` if the centroids do not fit features and labels."""
        check_array(self.weights, "centroids", (label_count, width))


def largest_entries(matrix: sparse.csr_matrix, count: int = _WORDS) -> sparse.csr_matrix:
    """Return the matrix with the `count` entries of each row that are largest by absolute value."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -np.abs(matrix.data), rows))
    rank = np.arange(len(rows)) - matrix.indptr[rows]  # `order` keeps the rows in place
    kept = order[rank < count]
    places = (rows[kept], matrix.indices[kept])
    return sparse.csr_matrix((matrix.data[kept], places), shape=matrix.shape)


def _unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.bincount(rows, np.square(matrix.data, dtype=np.float64), minlength=matrix.shape[0])
    scaled = (matrix.data / np.sqrt(squares)[rows]).astype(np.float32)
    return sparse.csr_matrix((scaled, matrix.indices, matrix.indptr), shape=matrix.shape)


def _rows(matrix: sparse.csr_matrix) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the columns and values of each row."""
    for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        yield matrix.indices[start:end], matrix.data[start:end]


def _nearest(ids: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids (K,) of the largest values and these; ties by id, filled up with others."""
    if len(values) > width:
        bound = np.partition(values, len(values) - width)[len(values) - width]
        chosen = values >= bound
        ids, values = ids[chosen], values[chosen]
    order = np.lexsort((ids, -values))[:width]
    ids, values = ids[order], values[order]
    missing = width - len(ids)
    if missing:
        others = np.setdiff1d(np.arange(width + 1), ids)[:missing]  # one of width + 1 ids may not exist
        ids, values = np.append(ids, others), np.append(values, np.zeros(missing, dtype=values.dtype))
    return ids, values
