"""Work on parts of the data in processes: where Python's lock would let threads wait for each other."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nlpcapsule.processes import pool_options, starting_workers
from nlpcapsule.threads import available_cpus, thread_count


def worker_count() -> int:
    """Return how many worker processes to start: one per thread.

    In a training of several processes the others wait meanwhile, so that their threads count, too. One
    thread is what torchrun gives each process if OMP_NUM_THREADS is not set: then all CPUs are used.
    """
    processes, threads = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), thread_count()
    if processes == 1:
        return threads
    return available_cpus() if threads == 1 else min(available_cpus(), processes * threads)


def in_processes(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], count: int) -> Iterator[Any]:
    """Yield the results of `count` tasks, which are the arguments of `work`, in order.

    Large arrays are mapped into the memory of all processes. The processes stay for the next call.
    """
    import joblib  # slow to import and only needed here

    workers = max(1, min(worker_count(), count))
    run = joblib.Parallel(n_jobs=workers, return_as="generator", **pool_options())
    with starting_workers():  # the call starts the workers
        results = run(joblib.delayed(work)(*task) for task in tasks)
    try:
        for result in results:  # noqa: UP028 - `yield from` would close it with a warning
            yield result
    finally:
        with warnings.catch_warnings(action="ignore"):  # joblib counts the tasks that it gives up
            results.close()
