"""Find the rows nearest to a document, labels' centroids or training documents, through an inverted index.

    c_j ∝ Σ_{i with label j} x_i;   score_j = ⟨x, c_j⟩,   of c_j the largest weights alone, scaled to length 1

x: tf-idf rows of length 1. There is nothing to learn, so that rare labels are found as well as frequent ones.
A document is compared only with the rows that share a word with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse

from nlpcapsule.lexical.sparse_rows import largest_entries, stacked_rows, transposed, unit_rows
from nlpcapsule.threads import thread_count

_CENTROID_WORDS = 50  # more cost time and find hardly more labels
DOCUMENT_WORDS = 30  # the words of the largest weights, which tell a document from others
_COMMON, _FEW = 0.1, 1_000  # a word of more labels than both tells them apart badly, and takes long
_ROWS_PER_WORD = 5_000  # those that a word weighs most in
_ROWS_AT_A_TIME = 4_096
_ENTRIES_AT_A_TIME = 2**20  # of a matrix, gathered in a thread
_SCORES_AT_A_TIME = 2**22  # which bounds memory
_FEWEST_AT_A_TIME = 64  # documents: each product first clears an array of all rows


@dataclass(frozen=True, eq=False)
class InvertedIndex:
    """Pruned rows, found by their words."""

    weights: sparse.csr_matrix  # (n, V) float32, sparse, rows of length 1 (or empty)

    @classmethod
    def of_labels(cls, features: sparse.csr_matrix, targets: sparse.csr_matrix) -> Self:
        """Index the centroids of labels: the sums of the rows (N, V) of each label's documents (N, n)."""
        by_label = targets.T.tocsr()  # (n, N)

        def centroids(start: int) -> sparse.csr_matrix:
            return largest_entries(by_label[start : start + _ROWS_AT_A_TIME] @ features, _CENTROID_WORDS)

        starts = range(0, by_label.shape[0], _ROWS_AT_A_TIME)
        rows = sparse.vstack(in_threads(centroids, starts)).tocsr()
        counts = np.bincount(rows.indices, minlength=rows.shape[1])  # (V,)
        rows.data[counts[rows.indices] > max(_FEW, _COMMON * rows.shape[0])] = 0
        rows.eliminate_zeros()
        return cls(unit_rows(rows))

    @classmethod
    def of_documents(cls, features: sparse.csr_matrix) -> Self:
        """Index documents (N, V)."""
        starts = range(0, features.shape[0], _ROWS_AT_A_TIME)
        chosen = (largest_entries(features[s : s + _ROWS_AT_A_TIME], DOCUMENT_WORDS) for s in starts)
        return cls(stacked_rows(map(unit_rows, chosen), features.shape))

    @cached_property
    def _rows_by_word(self) -> sparse.csr_matrix:
        """(V, n), of each word the rows that it weighs most in."""
        return transposed(self.weights, _ROWS_PER_WORD)

    def nearest(self, features: sparse.csr_matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (N, K) int32 nearest to documents (N, V), nearest first, and their cosines (N, K).

        Rows without a common word follow, in their order.
        """
        documents, row_count = features.shape[0], self.weights.shape[0]
        width = min(count, row_count)
        found = np.empty((documents, width), dtype=np.int32)
        cosines = np.zeros((documents, width), dtype=np.float32)
        index = self._rows_by_word  # before the threads ask for it
        size = max(_FEWEST_AT_A_TIME, _SCORES_AT_A_TIME // max(row_count, 1))

        def fill(start: int) -> None:
            scores = features[start : start + size] @ index
            for row, (begin, end) in enumerate(pairwise(scores.indptr), start):
                found[row], cosines[row] = _largest(scores.indices[begin:end], scores.data[begin:end], width)

        in_threads(fill, range(0, documents, size))
        return found, cosines


def row_products(features: sparse.csr_matrix, rows: sparse.csr_matrix, chosen: np.ndarray) -> np.ndarray:
    """Return the products (N, C) of documents (N, V) with chosen rows (N, C) of a matrix (n, V)."""
    products = np.empty(chosen.shape, dtype=np.float32)
    words = features.shape[1]
    mean = max(1.0, rows.nnz / max(rows.shape[0], 1))  # entries of a row
    size = max(1, int(_ENTRIES_AT_A_TIME / (mean * max(chosen.shape[1], 1))))

    def fill(start: int) -> None:
        part = chosen[start : start + size]
        document = features[start : start + size].toarray().ravel()  # (B V,)
        gathered = rows[part.ravel()]  # (B C, V)
        bounds = gathered.indptr[:: part.shape[1]].astype(np.int64)  # where each document's rows begin
        places = np.repeat(np.arange(len(part), dtype=np.int64) * words, np.diff(bounds)) + gathered.indices
        gathered.data = gathered.data * document[places]
        products[start : start + size] = (gathered @ np.ones(words, np.float32)).reshape(part.shape)

    in_threads(fill, range(0, len(chosen) if chosen.shape[1] else 0, size))
    return products


def best_of(ids: np.ndarray, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids (N, K) of the largest values (N, C), largest first, and these; ties by id."""
    order = np.lexsort((ids, -values))[:, :count]
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(values, order, axis=1)


def in_threads(work: Callable[[int], Any], starts: Sequence[int]) -> list[Any]:
    """Return the results of parts, in order; numpy and scipy compute without Python's lock."""
    if len(starts) < 2:
        return [work(start) for start in starts]
    with ThreadPoolExecutor(thread_count()) as threads:
        return list(threads.map(work, starts))


def _largest(ids: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
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
