"""A machine trained by liblinear itself is the one that scikit-learn's estimator trains."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from nlpcapsule.lexical.many_labels import machine
from nlpcapsule.lexical.many_labels.machine import Rows, train_machine


@pytest.fixture
def looked_up_again():
    machine._liblinear.cache_clear()
    yield
    machine._liblinear.cache_clear()


def problem(seed: int = 0, dtype: type = np.float32):
    """Return rows (60, 30), which of them have the label, and their weights."""
    generator = np.random.default_rng(seed)
    matrix = sparse.random(60, 30, density=0.3, format="csr", random_state=seed, dtype=dtype)
    return matrix, (np.arange(60) % 7 == 0).astype(np.float64), generator.uniform(1, 9, 60)


def rows_of(matrix: sparse.csr_matrix) -> Rows:
    return Rows(matrix.data, matrix.indices, matrix.indptr, matrix.shape)


@pytest.mark.parametrize(("seed", "C"), [(0, 1.0), (1, 0.3), (7, 4.0)])
def test_weights_and_bias_are_those_of_the_estimator(seed, C):
    matrix, has_label, importance = problem(seed)
    weights, bias = train_machine(rows_of(matrix), has_label, importance, C, seed)
    estimator = LinearSVC(C=C, loss="squared_hinge", dual=True, random_state=seed)
    estimator.fit(matrix.astype(np.float64), has_label, importance)
    np.testing.assert_array_equal(weights, estimator.coef_[0])
    assert bias == estimator.intercept_[0]


def test_the_estimator_is_used_where_liblinear_cannot_be_called(looked_up_again, monkeypatch):
    arguments = (rows_of(problem()[0]), *problem()[1:], 1.0, 3)
    direct = train_machine(*arguments)
    assert machine._liblinear() is not None
    machine._liblinear.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.svm._liblinear", None)  # importing it fails
    assert machine._liblinear() is None
    estimated = train_machine(*arguments)
    np.testing.assert_array_equal(estimated[0], direct[0])
    assert estimated[1] == direct[1]


def test_the_estimator_is_used_where_liblinear_gives_something_else(looked_up_again, monkeypatch):
    monkeypatch.setattr(machine, "_TOLERANCE", 0.5)
    assert machine._liblinear() is None
