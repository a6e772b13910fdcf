"""Products of documents with a sparse matrix whose result is dense."""

from __future__ import annotations

import numpy as np
from scipy import sparse

_COMMON = 0.25  # share of a matrix's rows from which a word has a dense row: faster, at most twice as large


class DenseProducts:
    """A matrix (n, V) by word, ready for products with documents (N, V).

    A dense row of a common word is added several times as fast as a sparse one. A document's products depend
    on no other document.
    """

    def __init__(self, matrix: sparse.csr_matrix) -> None:
        by_word = matrix.T.tocsr()  # (V, n)
        counts = np.diff(by_word.indptr)
        is_common = counts >= max(1.0, _COMMON * matrix.shape[0])
        self._place = np.where(is_common, np.cumsum(is_common) - 1, -1)  # (V,) row in `_common`, or -1
        self._common = by_word[is_common].toarray()  # (common words, n)
        by_word.data[np.repeat(is_common, counts)] = 0
        by_word.eliminate_zeros()
        self._rare = by_word  # (V, n)

    def __call__(self, rows: sparse.csr_matrix) -> np.ndarray:
        """Return the products (N, n) with documents (N, V)."""
        place = self._place[rows.indices]
        is_common = place >= 0
        ends = np.concatenate([[0], np.cumsum(is_common)])[rows.indptr]
        common = (rows.data[is_common], place[is_common], ends)
        products = sparse.csr_matrix(common, shape=(rows.shape[0], len(self._common))) @ self._common
        ends = rows.indptr - ends
        words, weights = rows.indices[~is_common], rows.data[~is_common]
        for product, start, end in zip(products, ends[:-1], ends[1:], strict=True):
            # `rows @ self._rare` would read all entries twice, first to count those of a sparse result.
            product += self._rare[words[start:end]].T @ weights[start:end]
        return products
