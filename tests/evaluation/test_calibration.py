import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.evaluation.label_metrics import expected_calibration_error

STATEMENTS = st.lists(
    st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.booleans()), min_size=1, max_size=60
)


def slow_calibration_error(statements, bins):
    """Bins of equal mass, larger ones first; equal probabilities share their accuracy."""
    statements = sorted(statements)
    shared = []
    for probability, _ in statements:
        outcomes = [right for other, right in statements if other == probability]
        shared.append((probability, sum(outcomes) / len(outcomes)))
    bins = min(bins, len(shared))
    error, start = 0.0, 0
    for number in range(bins):
        size = len(shared) // bins + (number < len(shared) % bins)
        members = shared[start : start + size]
        start += size
        stated = sum(probability for probability, _ in members) / size
        observed = sum(accuracy for _, accuracy in members) / size
        error += size / len(shared) * abs(stated - observed)
    return error


@given(statements=STATEMENTS, bins=st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_agrees_with_plain_loops(statements, bins):
    probabilities, correct = map(np.array, zip(*statements, strict=True))
    expected = slow_calibration_error(statements, bins)
    assert expected_calibration_error(probabilities, correct, bins) == pytest.approx(expected, abs=1e-12)


@given(statements=STATEMENTS, random=st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_order_of_the_input_does_not_matter(statements, random):
    shuffled = random.sample(statements, len(statements))
    errors = [
        expected_calibration_error(*map(np.array, zip(*order, strict=True)))
        for order in (statements, shuffled)
    ]
    assert errors[0] == pytest.approx(errors[1], abs=1e-12)


def test_hand_computed_two_bins():
    probabilities, correct = np.array([0.9, 0.2, 0.7, 0.4]), np.array([1, 0, 0, 1])
    # low bin: stated 0.3, observed 0.5; high bin: stated 0.8, observed 0.5
    assert expected_calibration_error(probabilities, correct, bins=2) == pytest.approx((0.2 + 0.3) / 2)


def test_a_constant_and_honest_probability_is_calibrated():
    assert expected_calibration_error(np.full(100, 0.25), np.arange(100) < 25) == pytest.approx(0.0)


def test_sure_and_always_wrong_is_an_error_of_one():
    assert expected_calibration_error(np.ones(30), np.zeros(30)) == 1.0


@pytest.mark.parametrize("bad", [np.nan, 1.5, -0.1])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(NlpCapsuleError, match="between 0 and 1"):
        expected_calibration_error(np.array([0.5, bad]), np.array([1, 0]))


def test_other_impossible_input_is_refused():
    with pytest.raises(NlpCapsuleError, match=r"`bins` must be a positive integer\. Got -1 instead\."):
        expected_calibration_error(np.array([0.5]), np.array([1]), bins=-1)
    with pytest.raises(NlpCapsuleError, match="one length"):
        expected_calibration_error(np.array([0.5]), np.array([1, 0]))
    with pytest.raises(DataError, match="no probabilities"):
        expected_calibration_error(np.array([]), np.array([]))
