"""Dense products equal those of scipy, whether a word is common or rare."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from nlpcapsule.lexical import sparse_rows
from nlpcapsule.lexical.sparse_rows import DenseProducts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("density", [0.05, 0.3, 1.0])
def test_products_are_those_of_sparse_matrices(seed, density):
    generator = np.random.default_rng(seed)
    rows, matrix = (
        sparse.random(*shape, density=share, format="csr", dtype=np.float32, random_state=generator)
        for shape, share in (((7, 30), 0.3), ((11, 30), density))
    )
    rows = sparse.vstack([rows, sparse.csr_matrix((1, 30), dtype=np.float32)], format="csr")  # an empty row
    found = DenseProducts(matrix)(rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (rows @ matrix.T).toarray(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("entries", [1, 7, 1000])
def test_a_matrix_that_is_read_in_parts_gives_the_same_products(monkeypatch, entries):
    generator = np.random.default_rng(0)
    rows, matrix = (
        sparse.random(count, 30, density=0.2, format="csr", dtype=np.float32, random_state=generator)
        for count in (5, 40)
    )
    matrix = sparse.vstack(
        [matrix[:0:-1], sparse.csr_matrix((3, 30), dtype=np.float32), matrix], format="csr"
    )
    whole = DenseProducts(matrix)(rows)
    monkeypatch.setattr(sparse_rows, "_ENTRIES_IN_PART", entries)
    np.testing.assert_array_equal(DenseProducts(matrix)(rows), whole)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_need_no_private_function_of_scipy(monkeypatch, kind):
    generator = np.random.default_rng(0)
    rows, matrix = (
        sparse.random(count, 300, density=0.1, format="csr", dtype=np.float32, random_state=generator)
        for count in (5, 40)
    )
    products, rows = DenseProducts(matrix), rows.astype(kind)
    found = products(rows)

    def of_another_scipy(*arguments):
        raise TypeError("csc_matvec() takes other arguments")

    monkeypatch.setattr(sparse_rows, "_unchecked_product", of_another_scipy)
    np.testing.assert_allclose(found, products(rows), rtol=1e-6)


def test_little_more_memory_is_needed_than_the_products_keep():
    generator = np.random.default_rng(0)
    matrix = sparse.random(4000, 5000, density=0.15, format="csr", dtype=np.float32, random_state=generator)
    tracemalloc.start()
    products = DenseProducts(matrix)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert products(matrix[:1]).shape == (1, 4000)
    assert most < 1.6 * kept


def test_the_products_of_a_document_are_the_same_next_to_others():
    generator = np.random.default_rng(0)
    rows, matrix = (
        sparse.random(count, 200, density=0.3, format="csr", dtype=np.float32, random_state=generator)
        for count in (40, 300)
    )
    products = DenseProducts(matrix)
    alone = np.concatenate([products(row) for row in rows])
    np.testing.assert_array_equal(products(rows), alone)


def test_the_matrix_is_left_as_it_is():
    matrix = sparse.csr_matrix(np.array([[1, 0, 2], [3, 0, 0]], dtype=np.float32))
    DenseProducts(matrix)
    assert matrix.toarray().tolist() == [[1, 0, 2], [3, 0, 0]]


@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_no_rows_give_no_products(shape):
    none = sparse.csr_matrix((0, 3), dtype=np.float32)
    assert DenseProducts(sparse.csr_matrix(shape, dtype=np.float32))(none).shape == (0, shape[0])
