"""Multiply sparse rows and arrays by scipy's compiled code, without its checks, which take longer."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def product_of_rows(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, dense: np.ndarray
) -> np.ndarray:
    """Return the product (N, m) of sparse rows (N, V), given by their arrays, and an array (V, m).

    The caller has checked that indices fit: compiled code does not.
    """
    rows, shape = len(indptr) - 1, dense.shape
    try:
        from scipy.sparse._sparsetools import csr_matvecs

        product = np.zeros((rows, shape[1]), dtype=dense.dtype)
        csr_matvecs(rows, *shape, indptr, indices, data, dense.ravel(), product.ravel())
    except (ImportError, AttributeError, TypeError, ValueError):  # another scipy, as this is private
        return sparse.csr_matrix((data, indices, indptr), (rows, shape[0])) @ dense
    return product


def product_of_transposed(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, dense: np.ndarray, width: int
) -> np.ndarray:
    """Return the product (V, m) of sparse rows (N, V), transposed, and an array (N, m); `width` is V.

    The caller has checked that indices fit: compiled code does not.
    """
    rows, columns = dense.shape
    try:
        from scipy.sparse._sparsetools import csc_matvecs

        product = np.zeros((width, columns), dtype=dense.dtype)
        csc_matvecs(width, rows, columns, indptr, indices, data, dense.ravel(), product.ravel())
    except (ImportError, AttributeError, TypeError, ValueError):  # another scipy, as this is private
        return sparse.csr_matrix((data, indices, indptr), (rows, width)).T @ dense
    return product
