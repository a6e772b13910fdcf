"""Products of sparse rows with a sparse matrix whose result is dense."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def dense_products(rows: sparse.csr_matrix, by_word: sparse.csr_matrix) -> np.ndarray:
    """Return rows @ by_word as an array (N, n), from (N, V) and (V, n).

    Document by document, so that a document's scores depend on no other. `rows @ by_word` would read all
    entries twice, first to count those of a sparse result.
    """
    products = np.empty((rows.shape[0], by_word.shape[1]), dtype=np.result_type(rows.dtype, by_word.dtype))
    for row, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        products[row] = by_word[rows.indices[start:end]].T @ rows.data[start:end]
    return products
