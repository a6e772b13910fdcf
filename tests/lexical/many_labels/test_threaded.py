"""Parts that threads work on come in order, a few at a time."""

import threading

import pytest

from nlpcapsule.lexical.many_labels import threaded


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(threaded, "thread_count", lambda: 2)


def test_results_come_in_order():
    assert list(threaded.threaded(lambda part: part * part, iter(range(50)))) == [n * n for n in range(50)]
    assert threaded.in_threads(str, range(1)) == ["0"]
    assert threaded.in_threads(str, range(0)) == []


def test_no_more_parts_are_begun_than_memory_should_hold():
    begun = []
    results = threaded.threaded(begun.append, range(1_000))
    next(results)
    results.close()
    assert len(begun) <= 2 * 2


def test_an_error_in_a_part_is_raised():
    def work(part: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return 1 // (5 - part)

    with pytest.raises(ZeroDivisionError):
        list(threaded.threaded(work, range(100)))
