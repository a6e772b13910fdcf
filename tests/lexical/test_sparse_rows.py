"""Sparse matrices are pruned, stacked and transposed in parts as they would be at once."""

import numpy as np
import pytest
from scipy import sparse

from nlpcapsule.lexical import sparse_rows
from nlpcapsule.lexical.sparse_rows import (
    largest_entries,
    row_of,
    stacked_rows,
    transposed,
    unchecked_rows,
)


def test_the_largest_entries_of_each_row_are_kept():
    matrix = sparse.csr_matrix([[1.0, -3.0, 2.0], [0.0, 0.5, 0.0]])
    assert largest_entries(matrix, 2).toarray().tolist() == [[0, -3, 2], [0, 0.5, 0]]


def test_the_largest_entries_can_be_those_of_other_values():
    matrix = sparse.csr_matrix([[1.0, -3.0, 2.0], [0.0, 0.5, 0.0]])
    kept = largest_entries(matrix, 2, keys=np.array([9.0, 1.0, 5.0, 0.0]))
    assert kept.toarray().tolist() == [[1, 0, 2], [0, 0.5, 0]]


@pytest.mark.parametrize("with_keys", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_of_equal_entries_those_of_the_first_columns_are_kept(seed, with_keys):
    generator = np.random.default_rng(seed)
    matrix = sparse.random(30, 40, density=0.4, random_state=seed, format="csr", dtype=np.float32)
    matrix.data = generator.integers(-3, 4, matrix.nnz).astype(np.float32)  # ties, some of them at 0
    keys = generator.integers(0, 4, matrix.nnz).astype(np.float64) if with_keys else None
    shuffled = np.lexsort((generator.random(matrix.nnz), row_of(matrix)))  # within each row
    other = sparse.csr_matrix((matrix.data[shuffled], matrix.indices[shuffled], matrix.indptr), matrix.shape)
    for given, own in ((matrix, keys), (other, None if keys is None else keys[shuffled])):
        found = largest_entries(given, 7, own)
        assert found.has_canonical_format
        for row in range(30):
            entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
            values, columns = matrix.data[entries], matrix.indices[entries]
            order = np.lexsort((columns, -(np.abs(values) if keys is None else keys[entries])))[:7]
            expected = np.sort(columns[order])
            got = slice(found.indptr[row], found.indptr[row + 1])
            np.testing.assert_array_equal(found.indices[got], expected)
            np.testing.assert_array_equal(found.data[got], values[np.searchsorted(columns, expected)])


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
