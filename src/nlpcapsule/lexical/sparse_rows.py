"""Prune, stack, transpose and multiply sparse matrices that may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy import sparse

from nlpcapsule.data.growing_array import GrowingArray
from nlpcapsule.lexical.arrays import release
from nlpcapsule.lexical.many_labels.threaded import threaded

_COMMON = 0.25  # share of a matrix's rows from which a word has a dense row: faster, at most twice as large
_ENTRIES_AT_A_TIME = 2**21  # that are transposed together
_ENTRIES_IN_PART = 2**18  # the same, where as little memory as possible is to be used


def unchecked_rows(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sparse.csr_matrix:
    """Return a sparse matrix of arrays that fit; a constructor's checks take longer than a row's product."""
    matrix = copy(_empty(shape))
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


@lru_cache(maxsize=8)
def _empty(shape: tuple[int, int]) -> sparse.csr_matrix:
    return sparse.csr_matrix(shape, dtype=np.float32)


def row_of(matrix: sparse.csr_matrix) -> np.ndarray:
    """Return the row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Scale the rows to length 1, in float32 and in place; empty rows stay empty."""
    rows = row_of(matrix)
    squared = np.bincount(rows, np.square(matrix.data, dtype=np.float64), minlength=matrix.shape[0])
    matrix.data = (matrix.data / np.sqrt(squared)[rows]).astype(np.float32)
    return matrix


def largest_entries(
    matrix: sparse.csr_matrix, count: int, keys: np.ndarray | None = None
) -> sparse.csr_matrix:
    """Return the matrix with the `count` entries of each row that are largest by key, or absolute value."""
    lengths = np.diff(matrix.indptr)
    if lengths.max(initial=0) <= count:
        return matrix.sorted_indices()
    if not matrix.has_sorted_indices:
        places = sparse.csr_matrix((np.arange(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
        places = places.sorted_indices().data
        keys = None if keys is None else keys[places]
        matrix = matrix.sorted_indices()
    rows, is_long = row_of(matrix), lengths > count
    sought = np.flatnonzero(is_long[rows])  # the other rows keep all
    # Equal entries stay in the order of their columns; `lexsort` would sort by these as well.
    order = sought[np.argsort(-(np.abs(matrix.data) if keys is None else keys)[sought], kind="stable")]
    few = np.uint16 if matrix.shape[0] <= 2**16 else np.int64  # small numbers are sorted faster
    order = order[np.argsort(rows[order].astype(few), kind="stable")]
    ends = np.cumsum(lengths[is_long])
    rank = np.arange(len(order)) - np.repeat(ends - lengths[is_long], lengths[is_long])
    is_kept = np.ones(matrix.nnz, dtype=bool)
    is_kept[order[rank >= count]] = False
    bounds = np.concatenate([[0], np.cumsum(np.minimum(lengths, count))])
    return sparse.csr_matrix((matrix.data[is_kept], matrix.indices[is_kept], bounds), shape=matrix.shape)


def in_parts(matrix: sparse.csr_matrix, size: int) -> Iterator[tuple[slice, sparse.csr_matrix]]:
    """Yield `size` rows at a time, and where they are; few rows are not copied."""
    if matrix.shape[0] <= size:
        yield slice(None), matrix
        return
    for start in range(0, matrix.shape[0], size):
        rows = slice(start, start + size)
        yield rows, matrix[rows]


def stacked_rows(parts: Iterable[sparse.csr_matrix], shape: tuple[int, int]) -> sparse.csr_matrix:
    """Return rows (N, V) float32 from parts; many of them are in files that are mapped into memory."""
    values, columns = GrowingArray(np.float32), GrowingArray(np.int32)
    lengths = [np.zeros(1, dtype=np.int64)]
    for part in parts:
        values.append(part.data)
        columns.append(part.indices)
        lengths.append(np.diff(part.indptr).astype(np.int64))
    return sparse.csr_matrix(
        (values.array(), columns.array(), np.cumsum(np.concatenate(lengths))), shape=shape
    )


def transposed(matrix: sparse.csr_matrix, most: int) -> sparse.csr_matrix:
    """Return a matrix (n, V) by columns: (V, n), of each column the entries of the largest values.

    Entries are read once for every few million of them, so that memory holds these alone, in each thread.
    """
    rows, columns = matrix.shape
    block = np.cumsum(_entries_by_column(matrix)) // _ENTRIES_AT_A_TIME  # (V,) where a column is read
    bounds = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), columns]

    def part(limits: tuple[int, int]) -> sparse.csr_matrix:
        return largest_entries(matrix[:, slice(*limits)].T.tocsr(), most)

    return stacked_rows(threaded(part, pairwise(bounds)), (columns, rows))


def _entries_by_column(matrix: sparse.csr_matrix) -> np.ndarray:
    """Count the entries (V,) of the columns of a matrix (n, V)."""
    counts = np.zeros(matrix.shape[1], dtype=np.int64)
    for start in range(0, matrix.nnz, _ENTRIES_AT_A_TIME):
        counts += np.bincount(matrix.indices[start : start + _ENTRIES_AT_A_TIME], minlength=len(counts))
    return counts


class DenseProducts:
    """A matrix (n, V) by word, ready for products with documents (N, V).

    A dense row of a common word is added several times as fast as a sparse one. A document's products depend
    on no other document.
    """

    def __init__(self, matrix: sparse.csr_matrix) -> None:
        counts = _entries_by_column(matrix)
        self._is_common = is_common = counts >= max(1, _COMMON * matrix.shape[0])  # (V,)
        place = np.where(is_common, np.cumsum(is_common), np.cumsum(~is_common)) - 1
        self._place = place.astype(np.int32)  # (V,) in the matrix of common or of rare words
        self._common = np.empty((is_common.sum(), matrix.shape[0]), dtype=matrix.dtype)  # (common words, n)
        ends = np.concatenate([[0], np.cumsum(counts[~is_common])])  # (rare words + 1,)
        place, total = ends[:-1].copy(), int(ends[-1])  # (rare words,) of a word's next entry
        data, indices = np.empty(total, dtype=matrix.dtype), np.empty(total, dtype=np.int32)
        starts = np.unique(np.searchsorted(matrix.indptr, range(0, matrix.nnz, _ENTRIES_IN_PART)))
        for start, end in pairwise([0, *starts[1:], matrix.shape[0]]):
            part = matrix[start:end]  # a copy of all would take as much memory again
            self._common[:, start:end] = part[:, is_common].toarray().T
            rare = part[:, ~is_common].T.tocsr()  # (rare words, rows of the part)
            lengths = np.diff(rare.indptr)
            places = np.arange(rare.nnz) + np.repeat(place - rare.indptr[:-1], lengths)
            data[places], indices[places] = rare.data, rare.indices + start
            place += lengths
            release(matrix)
        shape = matrix.shape[0], len(place)  # (n, rare words)
        self._rare = sparse.csc_matrix((data, indices, ends), shape)

    def __call__(self, rows: sparse.csr_matrix) -> np.ndarray:
        """Return the products (N, n) with documents (N, V)."""
        place, is_common = self._place[rows.indices], self._is_common[rows.indices]
        ends = np.concatenate([[0], np.cumsum(is_common)])[rows.indptr].astype(np.int32)
        shape = rows.shape[0], len(self._common)
        products = unchecked_rows(rows.data[is_common], place[is_common], ends, shape) @ self._common
        ends = rows.indptr - ends
        is_rare = ~is_common
        words, weights = place[is_rare], rows.data[is_rare]
        for product, start, end in zip(products, ends[:-1], ends[1:], strict=True):
            product += self._rare_products(words[start:end], weights[start:end])
        return products

    def _rare_products(self, words: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return `self._rare[:, words] @ weights` (n,), as scipy computes it after checks that take longer.

        A product of two sparse matrices would read entries twice, first to count the result's.
        """
        rare, words = self._rare, words.astype(self._rare.indptr.dtype, copy=False)
        try:
            return _unchecked_product(rare, words, weights.astype(rare.dtype, copy=False))
        except (ImportError, AttributeError, TypeError, ValueError):  # another scipy, as these are private
            return rare[:, words] @ weights


def _unchecked_product(rare: sparse.csc_matrix, words: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return `rare[:, words] @ weights` (n,); all is of the types that fit."""
    from scipy.sparse._sparsetools import csc_matvec, csr_row_index

    ends = np.zeros(len(words) + 1, dtype=words.dtype)
    np.cumsum(rare.indptr[words + 1] - rare.indptr[words], out=ends[1:])
    data, indices = np.empty(ends[-1], dtype=rare.dtype), np.empty(ends[-1], dtype=words.dtype)
    csr_row_index(len(words), words, rare.indptr, rare.indices, rare.data, indices, data)
    products = np.zeros(rare.shape[0], dtype=rare.dtype)
    csc_matvec(len(products), len(words), ends, indices, data, weights, products)
    return products
