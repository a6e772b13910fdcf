"""As many processes work as threads would; of a training in several processes, as many as all have."""

import pytest

from nlpcapsule.lexical.many_labels import pool


@pytest.mark.parametrize(
    ("processes", "threads", "expected"),
    [
        (None, 3, 3),
        (1, 1, 1),
        (4, 1, 16),  # torchrun's number, which no user asked for
        (4, 2, 8),
        (4, 8, 16),
    ],
)
def test_the_process_that_works_takes_the_cores_of_those_that_wait(monkeypatch, processes, threads, expected):
    monkeypatch.setattr(pool, "available_cpus", lambda: 16)
    monkeypatch.setattr(pool, "thread_count", lambda: threads)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    if processes is not None:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
    assert pool.worker_count() == expected
