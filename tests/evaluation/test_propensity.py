import numpy as np
import pytest

from nlpcapsule.evaluation.label_metrics import inverse_propensities, propensity_scored, training_examples
from nlpcapsule.evaluation.ranked import judge_rankings


def test_inverse_propensity_is_the_reciprocal_of_jains_sigmoid():
    counts, size = np.array([0, 1, 7, 350]), 15_449
    c = (np.log(size) - 1) * (1.5 + 1) ** 0.55
    propensity = 1 / (1 + c * np.exp(-0.55 * np.log(counts + 1.5)))
    np.testing.assert_allclose(inverse_propensities(counts, size), 1 / propensity)


@pytest.mark.parametrize("size", [1, 2])
def test_a_tiny_training_set_weighs_all_labels_alike(size):
    assert inverse_propensities(np.array([0, 1, 2]), size).tolist() == [1, 1, 1]


def test_labels_outside_the_model_have_no_training_examples():
    assert training_examples(np.array([[-4, 0], [1, 2]]), np.array([5, 6])).tolist() == [[0, 5], [6, 0]]


def test_finding_the_rare_label_is_worth_more_than_finding_the_frequent_one():
    counts = np.array([1, 900])
    rare, frequent = (
        propensity_scored(judge_rankings(np.array([[label]]), [[0, 1]]), counts, 1000, [1])
        for label in (0, 1)
    )
    assert rare == {"PSP@1": 1.0, "PSnDCG@1": 1.0}
    worth = inverse_propensities(counts, 1000)
    assert frequent["PSP@1"] == pytest.approx(worth[1] / worth[0])


def test_gains_are_summed_over_the_documents_before_the_division():
    counts = np.array([1, 900])
    judged = judge_rankings(np.array([[0], [0]]), [[0], [1]])
    worth = inverse_propensities(counts, 1000)
    assert propensity_scored(judged, counts, 1000, [1])["PSP@1"] == pytest.approx(worth[0] / worth.sum())
