"""Several kinds of evidence are weighed as held-out documents say."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.label_metrics import expected_calibration_error
from nlpcapsule.scoring import fusion as module
from nlpcapsule.scoring.fusion import (
    CONTENDERS,
    SHOWN,
    CandidateFeatures,
    Fusion,
    is_relevant,
    label_frequency,
)

WEIGHTS = np.array([0.5, 1.2, 0.3, -2.0, 0.4, -0.8, 0.2, 0.3, 0.0, 0.1, 0.6, -0.4])


def made_up(weights=WEIGHTS, documents=400, candidates=30, seed=0):
    """CandidateFeatures, and labels that are right as often as the weights say of it."""
    random = np.random.default_rng(seed)
    network, lexical = random.normal(size=(2, documents, candidates)) * 2
    shares, frequency = random.random((2, documents, candidates))
    evidence = CandidateFeatures(network, lexical, shares, random.random(documents), frequency)
    right = random.random((documents, candidates)) < expit(Fusion(weights, weights)(evidence))
    return evidence, right


def test_the_weights_that_made_the_labels_are_found_again():
    evidence, right = made_up(documents=4000)
    found = Fusion.fit(evidence, right)
    assert np.allclose(found.weights, WEIGHTS, atol=0.2)
    assert found.slope == pytest.approx(1, abs=0.1)
    assert found.offset == pytest.approx(0, abs=0.15)


def test_what_comes_out_is_calibrated_on_other_documents():
    fusion = Fusion.fit(*made_up(documents=4000))
    evidence, right = made_up(documents=4000, seed=1)
    joined = fusion(evidence)
    shown = top_columns(joined, SHOWN)
    probability, is_right = (np.take_along_axis(each, shown, axis=1) for each in (expit(joined), right))
    assert expected_calibration_error(probability.ravel(), is_right.ravel()) < 0.02


def test_labels_that_are_shown_are_calibrated_where_the_candidates_mislead():
    """Scores whose best are not as good as the rest would make one think: the slope must see it."""
    random = np.random.default_rng(0)
    z = random.normal(size=(2000, 30)) * 2
    right = random.random(z.shape) < expit(np.minimum(z, 1.0) - 1.0)
    zero = np.zeros(z.shape)
    evidence = CandidateFeatures(z, zero, zero, np.zeros(len(z)), zero)
    joined = Fusion.fit(evidence, right)(evidence)
    shown = top_columns(joined, SHOWN)
    probability, is_right = (np.take_along_axis(each, shown, axis=1) for each in (expit(joined), right))
    assert probability.mean() == pytest.approx(is_right.mean(), abs=0.01)


def test_documents_are_joined_a_few_at_a_time_and_as_all_at_once(monkeypatch):
    evidence, right = made_up()
    fusion = Fusion.fit(evidence, right)
    together = fusion(evidence)
    read = []
    expanded = CandidateFeatures.expanded
    monkeypatch.setattr(
        CandidateFeatures, "expanded", lambda self: read.append(len(self.network)) or expanded(self)
    )
    monkeypatch.setattr(module, "_AT_A_TIME", 150)
    assert fusion(evidence) == pytest.approx(together)
    assert read == [150, 150, 100]


@pytest.mark.parametrize(("right", "problem"), [(True, "each candidate"), (False, "none of the held-out")])
def test_what_cannot_be_weighed_is_said(right, problem):
    evidence, labels = made_up(documents=5)
    with pytest.raises(DataError, match=problem):
        Fusion.fit(evidence, np.full(labels.shape, right))


def test_useless_evidence_gets_no_weight():
    weights = np.zeros(12)
    weights[1], weights[3] = 1.5, -1.0  # only the lexical system knows anything
    found = Fusion.fit(*made_up(weights, documents=4000)).weights.reshape(3, 4)
    middling = found[0] + 0.5 * found[1] + 0.5 * found[2]
    assert middling == pytest.approx([0, 1.5, 0, -1], abs=0.1)


def test_candidates_that_nobody_considers_do_not_weigh():
    """Far below the contenders everything is wrong: what holds there must not bend the weights up here."""
    evidence, right = made_up(documents=3000, candidates=CONTENDERS)
    fitted = Fusion.fit(evidence, right).weights
    lost = np.full((3000, 100), -30.0)
    zero = np.zeros(lost.shape)
    widened = CandidateFeatures(
        np.hstack([evidence.network, lost]),
        np.hstack([evidence.lexical, lost / 3]),
        np.hstack([evidence.shares, zero]),
        evidence.nearest,
        np.hstack([evidence.frequency, zero + 0.5]),
    )
    again = Fusion.fit(widened, np.hstack([right, zero.astype(bool)])).weights
    assert again == pytest.approx(fitted, abs=1e-6)


def test_the_last_digit_of_a_networks_score_does_not_decide_who_competes():
    """Two candidates as good as each other for the last place among the contenders, by what finds these."""
    by_network, by_words = np.eye(12)[:2]
    network, lexical = np.linspace(5, -5, 30, dtype=np.float32)[None], np.linspace(1, -1, 30)[None]
    network[0, CONTENDERS] = network[0, CONTENDERS - 1]
    lexical[0, CONTENDERS - 1 : CONTENDERS + 1] = -4, 3
    nudged = network.copy()
    nudged[0, CONTENDERS] = np.nextafter(network[0, CONTENDERS], np.float32(9))
    zero = np.zeros(network.shape)
    joined = [
        Fusion(by_network, by_words)(CandidateFeatures(scores, lexical, zero, np.zeros(1), zero))
        for scores in (network, nudged)
    ]
    assert np.abs(joined[0] - joined[1]).max() < 1e-5


def test_evidence_that_is_the_same_everywhere_does_no_harm():
    evidence, right = made_up(documents=500)
    blind = replace(evidence, shares=np.zeros(evidence.shares.shape), nearest=np.zeros(500))
    joined = Fusion.fit(blind, right)(blind)
    shown = top_columns(joined, SHOWN)
    chances = np.take_along_axis(expit(joined), shown, axis=1).mean()
    assert chances == pytest.approx(np.take_along_axis(right, shown, axis=1).mean(), abs=0.02)


def test_a_near_copy_can_count_for_more():
    weights = np.zeros(12)
    weights[3], weights[10] = -1.0, 1.0  # neighbours count by how near they are
    found = Fusion.fit(*made_up(weights, documents=4000)).weights
    assert found[10] == pytest.approx(1, abs=0.15)
    assert found[2] == pytest.approx(0, abs=0.15)


def test_the_order_of_labels_is_that_of_the_evidence():
    evidence, right = made_up(documents=3, candidates=6)
    fusion = Fusion.fit(evidence, right)
    assert fusion.slope > 0


def test_a_handful_of_documents_does_not_make_huge_weights():
    evidence, _ = made_up(documents=4)
    fitted = Fusion.fit(evidence, evidence.network > 1)  # no weight is too large for what is so clear
    assert np.abs(np.concatenate([fitted.first, fitted.weights])).max() < 10


def test_labels_that_are_never_or_always_right_teach_nothing():
    evidence, right = made_up(documents=5)
    with pytest.raises(DataError, match=r"--model label-query"):
        Fusion.fit(evidence, np.zeros_like(right))


def test_it_goes_through_json_unchanged():
    fusion = Fusion(*np.random.default_rng(0).normal(size=(2, 12)), slope=0.7, offset=-0.1, rarest=0.3)
    again = Fusion.from_json(json.loads(json.dumps(fusion.to_json())))
    assert np.array_equal(again.weights, fusion.weights)
    assert (again.slope, again.offset, again.rarest) == (0.7, -0.1, 0.3)


def test_weights_of_earlier_versions_know_no_rarest_label():
    record = Fusion(np.ones(12), np.ones(12)).to_json()
    del record["rarest"]
    assert Fusion.from_json(record).rarest == 0


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "0.3", None, True])
def test_a_frequency_that_no_label_can_have_is_refused(value):
    record = Fusion(np.ones(12), np.ones(12)).to_json()
    with pytest.raises(DataError, match=r"fusion\.json"):
        Fusion.from_json({**record, "rarest": value})


def test_weights_that_are_no_object_are_refused():
    with pytest.raises(DataError, match=r"fusion\.json"):
        Fusion.from_json([1, 2])


def test_labels_without_examples_stay_without():
    fusion = Fusion(np.ones(12), np.ones(12), rarest=0.4)
    assert fusion.frequency(np.array([[0.0, 0.2, 0.7]])).tolist() == [[0.0, 0.4, 0.7]]


def test_right_candidates_are_those_among_the_documents_labels():
    candidates = np.array([[3, 1, 2], [0, 2, 1]])
    assert is_relevant(candidates, [np.array([1, 9]), np.array([], dtype=int)]).tolist() == [
        [False, True, False],
        [False, False, False],
    ]


def test_frequency_runs_from_none_to_the_most_frequent_label():
    assert label_frequency(np.array([0, 1, 9])).tolist() == pytest.approx([0, np.log(2) / np.log(10), 1])
