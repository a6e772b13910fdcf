"""Sparse matrices are pruned, stacked and transposed in parts as they would be at once."""

import numpy as np
import pytest
from scipy import sparse

from nlpcapsule.lexical import sparse_rows
from nlpcapsule.lexical.sparse_rows import largest_entries, stacked_rows, transposed, unchecked_rows


def test_the_largest_entries_of_each_row_are_kept():
    matrix = sparse.csr_matrix([[1.0, -3.0, 2.0], [0.0, 0.5, 0.0]])
    assert largest_entries(matrix, 2).toarray().tolist() == [[0, -3, 2], [0, 0.5, 0]]


def test_the_largest_entries_can_be_those_of_other_values():
    matrix = sparse.csr_matrix([[1.0, -3.0, 2.0], [0.0, 0.5, 0.0]])
    kept = largest_entries(matrix, 2, keys=np.array([9.0, 1.0, 5.0, 0.0]))
    assert kept.toarray().tolist() == [[1, 0, 2], [0, 0.5, 0]]


@pytest.mark.parametrize("entries", [2**21, 5])
def test_a_transposed_matrix_is_that_of_scipy(entries, monkeypatch):
    monkeypatch.setattr(sparse_rows, "_ENTRIES_AT_A_TIME", entries)
    matrix = sparse.random(11, 17, density=0.3, random_state=1, format="csr", dtype=np.float32)
    found = transposed(matrix, 100)
    assert (found != matrix.T.tocsr()).nnz == 0
    assert found.shape == (17, 11)
    pruned = transposed(matrix, 2)
    assert (pruned != largest_entries(matrix.T.tocsr(), 2)).nnz == 0
    assert transposed(sparse.csr_matrix((0, 17), dtype=np.float32), 2).shape == (17, 0)


def test_stacked_parts_are_those_of_scipy():
    parts = [sparse.random(rows, 9, density=0.3, random_state=rows, format="csr") for rows in (4, 1, 6)]
    found = stacked_rows(parts, (11, 9))
    np.testing.assert_allclose(found.toarray(), sparse.vstack(parts).toarray(), rtol=1e-6)
    assert found.dtype == np.float32


def test_matrices_that_are_not_checked_are_those_of_scipy_and_share_nothing():
    generator = np.random.default_rng(0)
    wanted = [sparse.random(3, 9, density=0.4, format="csr", random_state=generator) for _ in range(3)]
    found = [unchecked_rows(each.data, each.indices, each.indptr, each.shape) for each in wanted]
    for own, other in zip(found, wanted, strict=True):
        assert own.has_canonical_format == other.has_canonical_format
        assert (own != other).nnz == 0
        assert (own @ np.ones(9)).tolist() == (other @ np.ones(9)).tolist()
