"""The machine of a label is the one that scikit-learn trains on the same rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from nlpcapsule.lexical.many_labels import label_machines
from nlpcapsule.lexical.many_labels.label_machines import LabelMachines
from nlpcapsule.lexical.many_labels.nearest_negatives import NearestNegatives

DOCUMENTS = 60
SAMPLE = np.array([1, 4, 9, 16, 25, 36, 49])
NEAREST = np.array([30, 4, 31, 32, 50, 51], dtype=np.int32)  # of two labels, three each
NEGATIVES = NearestNegatives(NEAREST, np.array([0, 3, 6]), DOCUMENTS, SAMPLE)
HOLDERS = [np.array([2, 9, 40]), np.array([5, 6])]  # the first has a document of the sample
SMALLEST = 0.05


@pytest.fixture
def features() -> sparse.csr_matrix:
    return sparse.random(DOCUMENTS, 40, density=0.2, format="csr", random_state=3, dtype=np.float32)


def expected_weights(features: sparse.csr_matrix, label: int) -> tuple[np.ndarray, float]:
    """Return the weights (V,) of an estimator, over all words, and its bias."""
    holders, nearest = HOLDERS[label], NEAREST[3 * label : 3 * label + 3]
    sampled = [row for row in SAMPLE if row not in holders and row not in nearest]
    weight = (DOCUMENTS - len(holders) - len(nearest)) / len(sampled)
    order = np.concatenate([holders, nearest, sampled])
    counts = [len(holders), len(nearest), len(sampled)]
    estimator = LinearSVC(C=0.5, loss="squared_hinge", dual=True, random_state=5)
    importance = np.repeat([1, 1, weight], counts)
    estimator.fit(features[order].astype(np.float64), np.repeat([1, 0, 0], counts), importance)
    return estimator.coef_[0], estimator.intercept_[0]


def test_weights_are_those_of_an_estimator_over_all_words(features):
    machines = LabelMachines(features, NEGATIVES)
    for label in (0, 1, 0):  # one label leaves nothing behind for the next
        words, weights, bias = machines.fit(label, HOLDERS[label], SMALLEST, 0.5, 5)
        expected, expected_bias = expected_weights(features, label)
        np.testing.assert_array_equal(words, np.flatnonzero(np.abs(expected) >= SMALLEST))
        np.testing.assert_array_equal(weights, expected[words].astype(np.float32))
        assert bias == expected_bias


def test_only_the_largest_weights_are_kept(features, monkeypatch):
    monkeypatch.setattr(label_machines, "_WEIGHTS", 4)
    words, weights, _ = LabelMachines(features, NEGATIVES).fit(1, HOLDERS[1], 0, 0.5, 5)
    expected, _ = expected_weights(features, 1)
    assert set(words) == set(np.argsort(-np.abs(expected))[:4])
    assert (np.diff(words) > 0).all()
    np.testing.assert_array_equal(weights, expected[words].astype(np.float32))


def test_of_equal_weights_those_of_the_first_words_are_kept(monkeypatch):
    monkeypatch.setattr(label_machines, "_WEIGHTS", 3)
    values = np.array([0.5, -2, 0.5, 1, 0, -0.5], dtype=np.float32)
    words = np.array([11, 10, 9, 12, 2, 1])
    assert label_machines._largest(values, words).tolist() == [5, 1, 3]
    assert label_machines._largest(values[[0, 4, 1]], words[[0, 4, 1]]).tolist() == [2, 0]
