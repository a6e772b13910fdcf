"""What is compared is timed in turn, and no request directly after the same one."""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from benchmarks.speed import rounds
from benchmarks.speed.rounds import medians_in_turn, time_in_turn


def test_requests_are_timed_in_turn_after_a_round_that_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    clock = itertools.accumulate(itertools.cycle([1.0, 2.0]))  # a run takes 2 seconds
    monkeypatch.setattr(rounds.time, "perf_counter", lambda: next(clock))
    runs = {name: [partial(done.append, f"{name}{text}") for text in range(3)] for name in "ab"}
    timings = medians_in_turn(runs, 2)
    assert done == ["a0", "a1", "a2", "b0", "b1", "b2"] * 3
    assert {name: timing.wall for name, timing in timings.items()} == {"a": [2.0] * 2, "b": [2.0] * 2}
    assert all(first != second for first, second in itertools.pairwise(done))


def test_one_run_of_each_is_timed_in_turn() -> None:
    done: list[str] = []
    timings = time_in_turn({name: partial(done.append, name) for name in "ab"}, 3)
    assert done == ["a", "b"] * 4
    assert [len(timing.wall) for timing in timings.values()] == [3, 3]
    assert timings["a"].ratio(timings["a"]) == 1
