"""Two kinds of evidence are weighed as held-out documents say."""

import json

import numpy as np
import pytest
from scipy.special import expit

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.calibration import expected_calibration_error
from nlpcapsule.ranking.fusion import Fusion, are_right, label_frequency


def made_up(weights, documents=400, candidates=30, seed=0):
    random = np.random.default_rng(seed)
    network, lexical = random.normal(size=(2, documents, candidates)) * 2
    frequency = random.random((documents, candidates))
    right = random.random((documents, candidates)) < expit(
        Fusion(np.array(weights))(network, lexical, frequency)
    )
    return network, lexical, frequency, right


def test_the_weights_that_made_the_labels_are_found_again():
    weights = [0.5, 1.2, 0.4, -0.8, 0.3, -2.0]
    found = Fusion.fit(*made_up(weights, documents=2000)).weights
    assert np.allclose(found, weights, atol=0.15)


def test_what_comes_out_is_calibrated_on_other_documents():
    weights = [0.5, 1.2, 0.4, -0.8, 0.3, -2.0]
    fusion = Fusion.fit(*made_up(weights))
    *evidence, right = made_up(weights, seed=1)
    assert expected_calibration_error(expit(fusion(*evidence)).ravel(), right.ravel()) < 0.02


def test_useless_evidence_gets_no_weight():
    network, lexical, frequency, right = made_up([0.0, 1.5, 0.0, 0.0, 0.0, -1.0], documents=2000)
    found = Fusion.fit(network, lexical, frequency, right).weights
    assert abs(found[0] + 0.5 * found[2]) < 0.05  # at a middling frequency
    assert found[1] + 0.5 * found[3] == pytest.approx(1.5, abs=0.1)


def test_labels_that_are_never_or_always_right_teach_nothing():
    network, lexical, frequency, right = made_up([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], documents=5)
    with pytest.raises(DataError, match=r"inference\.lexical=none"):
        Fusion.fit(network, lexical, frequency, np.zeros_like(right))


def test_it_goes_through_json_unchanged():
    fusion = Fusion(np.random.default_rng(0).normal(size=6))
    assert np.array_equal(Fusion.from_json(json.loads(json.dumps(fusion.to_json()))).weights, fusion.weights)


def test_right_candidates_are_those_among_the_documents_labels():
    candidates = np.array([[3, 1, 2], [0, 2, 1]])
    assert are_right(candidates, [np.array([1, 9]), np.array([], dtype=int)]).tolist() == [
        [False, True, False],
        [False, False, False],
    ]


def test_frequency_runs_from_none_to_the_most_frequent_label():
    assert label_frequency(np.array([0, 1, 9])).tolist() == pytest.approx([0, np.log(2) / np.log(10), 1])
