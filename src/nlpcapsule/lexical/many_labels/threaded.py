"""Work on parts of the data in threads: numpy and scipy compute without Python's lock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from nlpcapsule.threads import thread_count

T = TypeVar("T")
_AHEAD = 2  # parts per thread that are finished before the first of them is asked for
_thread = threading.local()


def in_threads(work: Callable[[int], Any], starts: Sequence[int]) -> list[Any]:
    """Return the results of parts, in order."""
    return list(threaded(work, starts))


def threaded(work: Callable[[T], Any], parts: Iterable[T]) -> Iterator[Any]:
    """Yield the results of parts, in order; few of them are in memory.

    Work in one of these threads starts no further ones.
    """
    remaining = iter(parts)
    first = list(islice(remaining, 2))
    if len(first) < 2 or getattr(_thread, "is_one_of_many", False):
        yield from map(work, first)
        yield from map(work, remaining)
        return
    count = thread_count()
    with ThreadPoolExecutor(count, initializer=_mark_thread) as threads:
        waiting: deque[Future[Any]] = deque(threads.submit(work, part) for part in first)
        try:
            for part in remaining:
                waiting.append(threads.submit(work, part))
                if len(waiting) >= _AHEAD * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # after an error, or where no more results are asked for
                future.cancel()


def _mark_thread() -> None:
    _thread.is_one_of_many = True
