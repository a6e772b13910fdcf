"""Products of documents with a sparse matrix whose result is dense."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nlpcapsule.lexical.sparse_rows import in_parts

_COMMON = 0.25  # share of a matrix's rows from which a word has a dense row: faster, at most twice as large
_ROWS_AT_A_TIME = 512  # which bounds memory


class DenseProducts:
    """A matrix (n, V) by word, ready for products with documents (N, V).

    A dense row of a common word is added several times as fast as a sparse one. A document's products depend
    on no other document.
    """

    def __init__(self, matrix: sparse.csr_matrix) -> None:
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        self._is_common = is_common = counts >= max(1, _COMMON * matrix.shape[0])  # (V,)
        self._place = np.where(is_common, np.cumsum(is_common), np.cumsum(~is_common)) - 1  # (V,) row below
        self._rare = matrix[:, ~is_common].T.tocsr()  # (rare words, n)
        self._common = np.empty((is_common.sum(), matrix.shape[0]), dtype=matrix.dtype)  # (common words, n)
        for rows, part in in_parts(matrix, _ROWS_AT_A_TIME):
            self._common[:, rows] = part[:, is_common].toarray().T

    def __call__(self, rows: sparse.csr_matrix) -> np.ndarray:
        """Return the products (N, n) with documents (N, V)."""
        place, is_common = self._place[rows.indices], self._is_common[rows.indices]
        ends = np.concatenate([[0], np.cumsum(is_common)])[rows.indptr]
        common = (rows.data[is_common], place[is_common], ends)
        products = sparse.csr_matrix(common, shape=(rows.shape[0], len(self._common))) @ self._common
        ends = rows.indptr - ends
        words, weights = place[~is_common], rows.data[~is_common]
        for product, start, end in zip(products, ends[:-1], ends[1:], strict=True):
            # `rows @ self._rare` would read all entries twice, first to count those of a sparse result.
            product += self._rare[words[start:end]].T @ weights[start:end]
        return products
