import random

import numpy as np
import pytest

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.evaluation import bootstrap
from nlpcapsule.evaluation.bootstrap import bootstrap_interval, paired_bootstrap, resampled_means


def slow_paired_bootstrap(a, b, resamples):
    differences = [x - y for x, y in zip(a, b, strict=True)]
    dice = random.Random(7)
    means = sorted(
        sum(dice.choice(differences) for _ in differences) / len(differences) for _ in range(resamples)
    )
    opposite = min(sum(value <= 0 for value in means), sum(value >= 0 for value in means))
    return means[int(0.025 * resamples)], means[int(0.975 * resamples)], 2 * opposite / resamples


def two_systems(documents=60, advantage=0.05):
    draws = np.random.default_rng(5)
    b = draws.random(documents)
    return b + draws.normal(advantage, 0.2, documents), b


def test_agrees_with_plain_loops_up_to_chance():
    a, b = two_systems()
    result = paired_bootstrap(a, b)
    low, high, p_value = slow_paired_bootstrap(a.tolist(), b.tolist(), 4000)
    assert result.difference == pytest.approx((a - b).mean())
    assert result.low == pytest.approx(low, abs=0.006)
    assert result.high == pytest.approx(high, abs=0.006)
    assert result.p_value == pytest.approx(p_value, abs=0.03)


def test_equal_systems_differ_by_nothing():
    a = np.random.default_rng(0).random(50)
    result = paired_bootstrap(a, a)
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


def test_a_constant_advantage_is_certain_and_the_p_value_says_how_much_so_many_draws_can():
    b = np.random.default_rng(0).random(50)
    result = paired_bootstrap(b + 0.1, b, resamples=999)
    assert result.low == pytest.approx(0.1)
    assert result.high == pytest.approx(0.1)
    assert result.p_value == pytest.approx(2 / 1000)


def test_exchanging_the_systems_turns_the_sign():
    a, b = two_systems()
    forth, back = paired_bootstrap(a, b), paired_bootstrap(b, a)
    assert back.difference == pytest.approx(-forth.difference)
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))
    assert back.p_value == forth.p_value


def test_the_same_seed_gives_the_same_result_and_another_seed_another():
    a, b = two_systems()
    assert paired_bootstrap(a, b, seed=1) == paired_bootstrap(a, b, seed=1)
    assert paired_bootstrap(a, b, seed=1) != paired_bootstrap(a, b, seed=2)


def test_drawing_in_many_chunks_gives_all_resamples(monkeypatch):
    values = np.random.default_rng(1).random(30)
    monkeypatch.setattr(bootstrap, "DRAWS_AT_ONCE", 100)
    means = resampled_means(values, 1000, seed=0)
    assert means.shape == (1000,)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    assert means.std() == pytest.approx(values.std() / np.sqrt(30), rel=0.1)


def test_the_interval_of_a_mean_has_the_width_of_the_normal_approximation():
    values = np.random.default_rng(2).normal(3.0, 1.0, 400)
    low, high = bootstrap_interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.05)


def test_impossible_input_is_refused():
    one = np.ones(3)
    with pytest.raises(NlpCapsuleError, match="Got 3 and 2 instead"):
        paired_bootstrap(one, np.ones(2))
    with pytest.raises(NlpCapsuleError, match="`b` must not contain NaN"):
        paired_bootstrap(one, one * np.nan)
    with pytest.raises(NlpCapsuleError, match=r"`resamples` must be a positive integer\. Got 0 instead\."):
        paired_bootstrap(one, one, resamples=0)
    with pytest.raises(NlpCapsuleError, match="vector"):
        bootstrap_interval(np.ones((2, 2)))
    with pytest.raises(DataError, match="nothing to resample"):
        bootstrap_interval(np.array([]))
