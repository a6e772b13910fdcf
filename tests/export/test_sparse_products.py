"""Products of sparse rows and arrays are those of scipy, whatever its private functions take."""

import numpy as np
import pytest
from scipy import sparse

from nlpcapsule.export.sparse_products import product_of_rows, product_of_transposed


@pytest.mark.parametrize("is_private", [True, False], ids=["private functions", "another scipy"])
def test_products_with_arrays_are_those_of_scipy(is_private, monkeypatch):
    from scipy.sparse import _sparsetools

    for name in ("csr_matvecs", "csc_matvecs"):
        own = getattr(_sparsetools, name)
        # A function with other arguments, and then scipy's own call of it.
        calls = iter([own] if is_private else [_refuse, own])
        monkeypatch.setattr(_sparsetools, name, lambda *given, calls=calls: next(calls)(*given))
    generator = np.random.default_rng(1)
    rows = sparse.random(6, 9, density=0.3, random_state=1, format="csr", dtype=np.float32)
    arrays = rows.data, rows.indices, rows.indptr
    left, right = (generator.random((size, 4), dtype=np.float32) for size in (9, 6))
    np.testing.assert_allclose(product_of_rows(*arrays, left), rows.toarray() @ left, rtol=1e-6)
    np.testing.assert_allclose(
        product_of_transposed(*arrays, right, 9), rows.toarray().T @ right, rtol=1e-6, atol=1e-7
    )


def _refuse(*given):
    raise TypeError("other arguments")
