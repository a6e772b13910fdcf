"""Dense products equal those of scipy, bit by bit."""

import numpy as np
import pytest
from scipy import sparse

from nlpcapsule.lexical.dense_products import dense_products


@pytest.mark.parametrize("seed", range(5))
def test_products_are_those_of_sparse_matrices(seed):
    generator = np.random.default_rng(seed)
    rows, by_word = (
        sparse.random(*shape, density=0.3, format="csr", dtype=np.float32, random_state=generator)
        for shape in ((7, 30), (30, 11))
    )
    rows = sparse.vstack([rows, sparse.csr_matrix((1, 30), dtype=np.float32)], format="csr")  # an empty row
    found = dense_products(rows, by_word)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (rows @ by_word).toarray())


def test_no_rows_give_no_products():
    none = sparse.csr_matrix((0, 3), dtype=np.float32)
    assert dense_products(none, sparse.csr_matrix((3, 2), dtype=np.float32)).shape == (0, 2)
