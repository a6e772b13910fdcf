"""Rank the documents of several callers together.

One thread does the work. While it is busy, requests collect, and it then takes as many as fit into a batch. A
request that finds it idle starts immediately, so a lone request never waits for company.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class ClosedError(RuntimeError):
    """The service is shutting down."""


@dataclass(frozen=True, eq=False)
class _Job(Generic[Item, Result]):
    items: Sequence[Item]
    done: Future[list[Result]]


class Batcher(Generic[Item, Result]):
    """A thread that works on items of several callers at a time.

    Args:
        work: Maps items to their results, in their order. An item's result must not depend on the others.
        most: Most items at a time; a caller with more gets a batch of its own.
        observe: Called with the number of items of each batch.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], list[Result]],
        most: int,
        observe: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._work, self._most, self._observe = work, most, observe
        self._waiting: queue.Queue[_Job[Item, Result] | None] = queue.Queue()
        self._is_closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="rank-batches", daemon=True)
        self._thread.start()

    async def __call__(self, items: Sequence[Item]) -> list[Result]:
        """Return the results of a caller's items.

        Raises:
            ClosedError: After `close`.
        """
        return await asyncio.wrap_future(self.submit(items))

    def submit(self, items: Sequence[Item]) -> Future[list[Result]]:
        """Queue a caller's items and return the future of their results."""
        job = _Job[Item, Result](items, Future())
        with self._lock:
            if self._is_closed:
                raise ClosedError("the service is shutting down")
            self._waiting.put(job)
        return job.done

    def close(self) -> None:
        """Finish what was submitted, and accept nothing more."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        held: _Job[Item, Result] | None = None
        while True:
            job = held or self._waiting.get()
            if job is None:
                return
            batch, held, is_last = self._filled(job)
            self._finish(batch)
            if is_last:
                return

    def _filled(
        self, first: _Job[Item, Result]
    ) -> tuple[list[_Job[Item, Result]], _Job[Item, Result] | None, bool]:
        """Return the jobs of a batch, one that did not fit any more, and whether the queue was closed."""
        batch, count = [first], len(first.items)
        while count < self._most:
            try:
                job = self._waiting.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return batch, None, True
            if count + len(job.items) > self._most:
                return batch, job, False
            batch.append(job)
            count += len(job.items)
        return batch, None, False

    def _finish(self, batch: list[_Job[Item, Result]]) -> None:
        """Work on a batch; if that fails, on each job alone, so that no caller gets another's error."""
        jobs = [job for job in batch if job.done.set_running_or_notify_cancel()]
        if not jobs:
            return
        items = [item for job in jobs for item in job.items]
        self._observe(len(items))
        try:
            results = self._work(items)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].done.set_exception(error)
                return
            for job in jobs:
                self._finish_alone(job)
            return
        start = 0
        for job in jobs:
            job.done.set_result(results[start : start + len(job.items)])
            start += len(job.items)

    def _finish_alone(self, job: _Job[Item, Result]) -> None:
        try:
            job.done.set_result(self._work(list(job.items)))
        except Exception as error:
            job.done.set_exception(error)
