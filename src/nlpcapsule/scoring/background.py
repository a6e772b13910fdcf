"""Compute in background threads of this process, while the caller goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

from nlpcapsule.threads import thread_count

T = TypeVar("T")


def in_background(compute: Callable[..., T], *given: Any) -> Future[T]:
    """Start a computation in a background thread. It must not wait for another one there."""
    return begin(_threads_of(os.getpid()), compute, *given)


@cache
def _threads_of(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(thread_count())


def begin(threads: ThreadPoolExecutor, compute: Callable[..., T], *given: Any) -> Future[T]:
    """Start a computation in a thread; compute here if the interpreter ends or no thread can start."""
    begun: Future[T] = Future()
    waiting = [partial(compute, *given)]  # a list, from which only one thread can take it

    def run() -> None:
        try:
            work = waiting.pop()
        except IndexError:
            return
        try:
            begun.set_result(work())
        except BaseException as error:  # the caller of `result` gets it
            begun.set_exception(error)

    try:
        threads.submit(run)
    except RuntimeError:  # `run` may wait for a thread all the same, and does nothing then
        run()
    return begun
