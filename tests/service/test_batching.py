"""Requests of several callers are worked on together, and each caller gets its own results."""

import threading

import pytest

from nlpcapsule.service.batching import Batcher, ClosedError


class Held:
    """Work that waits for a signal, so that requests collect meanwhile."""

    def __init__(self, fails_on=None):
        self.batches, self.fails_on = [], fails_on
        self.started, self.go_on = threading.Event(), threading.Event()

    def __call__(self, items):
        self.batches.append(list(items))
        self.started.set()
        assert self.go_on.wait(300)
        if self.fails_on in items:
            raise ValueError(self.fails_on)
        return [item * 10 for item in items]


@pytest.fixture
def held():
    return Held()


def submitted(batcher, work, *jobs):
    """Submit the first job, and the others while it is worked on."""
    first = batcher.submit(jobs[0])
    assert work.started.wait(300)
    others = [batcher.submit(job) for job in jobs[1:]]
    work.go_on.set()
    return [future.result(300) for future in (first, *others)]


def test_a_lone_request_is_worked_on_without_company(held):
    held.go_on.set()
    assert Batcher(held, 8).submit([1]).result(300) == [10]
    assert held.batches == [[1]]


def test_requests_that_arrive_meanwhile_are_one_batch_and_each_gets_its_own_results(held):
    assert submitted(Batcher(held, 8), held, [1], [2, 3], [4]) == [[10], [20, 30], [40]]
    assert held.batches == [[1], [2, 3, 4]]


def test_a_batch_is_never_larger_than_allowed_unless_one_request_is(held):
    found = submitted(Batcher(held, 3), held, [1], [2, 3], [4, 5], [6, 7, 8, 9], [10])
    assert found == [[10], [20, 30], [40, 50], [60, 70, 80, 90], [100]]
    assert held.batches == [[1], [2, 3], [4, 5], [6, 7, 8, 9], [10]]


def test_an_error_reaches_only_the_request_that_caused_it():
    work = Held(fails_on=3)
    batcher = Batcher(work, 8)
    first = batcher.submit([1])
    assert work.started.wait(300)
    good, bad = batcher.submit([2]), batcher.submit([3])
    work.go_on.set()
    assert (first.result(300), good.result(300)) == ([10], [20])
    with pytest.raises(ValueError, match="3"):
        bad.result(300)
    assert batcher.submit([5]).result(300) == [50]


def test_a_request_that_was_given_up_is_not_worked_on(held):
    batcher = Batcher(held, 8)
    first = batcher.submit([1])
    assert held.started.wait(300)
    batcher.submit([2]).cancel()
    kept = batcher.submit([3])
    held.go_on.set()
    assert (first.result(300), kept.result(300)) == ([10], [30])
    assert held.batches == [[1], [3]]


def test_closing_finishes_what_was_submitted_and_refuses_the_rest(held):
    batcher = Batcher(held, 1)
    waiting = [batcher.submit([number]) for number in range(3)]
    held.go_on.set()
    batcher.close()
    assert [future.result(0) for future in waiting] == [[0], [10], [20]]
    with pytest.raises(ClosedError):
        batcher.submit([4])


def test_batches_are_counted(held):
    counted = []
    submitted(Batcher(held, 8, counted.append), held, [1], [2, 3], [4])
    assert counted == [1, 3]
