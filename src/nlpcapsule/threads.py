"""How many threads and processes compute: no more than the machine grants, and fewer where that is faster.

A container may show sixty-four cores and grant one. Threads that wait for each other after every step are
then slower than a single one, and so they are on a core that another process uses.

A command calls `use_threads` once. Everything that starts threads or processes asks `thread_count`.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_CGROUPS = Path("sys/fs/cgroup")
_LIMITS = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")  # version 2 has the first alone
_POOLS = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS")  # torch and numpy; tokenizers
_WORTHWHILE = 0.9  # fewer threads are kept if they take at most this share of the time
_PROBES, _STEPS, _SIZE = 3, 20, 256

_chosen: int | None = None
_is_asked_for = False  # whether the user chose the number


def thread_count() -> int:
    """Return the number of threads, or of worker processes, to use."""
    return _chosen or _from_environment() or available_cpus()


def use_threads(asked: int | None) -> int:
    """Choose and return the number of threads, before libraries that start some are imported.

    None, if the user asks for no number, takes OMP_NUM_THREADS, or what the machine grants.
    """
    global _chosen, _is_asked_for
    asked = asked or _from_environment()
    _chosen, _is_asked_for = asked or available_cpus(), asked is not None
    for name in _POOLS:
        os.environ[name] = str(_chosen)
    # A waiting thread soon sleeps: on a busy machine it would take the core of the thread it waits for.
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # large tensors of torch get pages of 2 MiB
    return _chosen


def keep_faster_torch_threads(say: Callable[[str], None], earlier: int | None = None) -> None:
    """Time a few steps of torch with all threads and with fewer, and keep the faster number.

    A number that the user asked for is kept. So is the `earlier` one of an interrupted run, as results depend
    on it in their last digits.
    """
    global _chosen
    import torch

    if earlier is not None and not _is_asked_for:
        use_threads(earlier)
    most = thread_count()
    torch.set_num_threads(most)
    if _is_asked_for or most == 1:
        return
    _chosen = _fastest(most)
    torch.set_num_threads(_chosen)
    if _chosen < most:
        say(
            f"{_chosen} of {most} threads: more are slower, as other processes compute; --threads {_chosen} "
            "repeats this choice"
        )


def _fastest(most: int) -> int:
    """Return `most`, half of it, and so on down to 1: the number of threads that takes the least time.

    A smaller number has to be faster by a tenth.
    """
    best, least = most, _seconds_of_steps(most)
    while most > 1:
        most //= 2
        if (took := _seconds_of_steps(most)) < _WORTHWHILE * least:
            best, least = most, took
    return best


def available_cpus(root: Path = Path("/")) -> int:
    """Return the CPUs that this process may use: its affinity, limited by quotas of its control groups."""
    # Some systems, such as macOS, have no affinity.
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = min(_quotas(root), default=float(affinity))
    return max(1, min(affinity, int(quota)))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the limits of this process's control groups and of the groups above them, in CPUs."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        if line.count(":") < 2:
            continue
        _, controllers, path = line.split(":", 2)
        mounts = [controllers, "cpu"] if "cpu" in controllers.split(",") else []
        for mount in mounts if controllers else [""]:  # version 2 has a single hierarchy, without a name
            for group in _with_parents(root / _CGROUPS / mount, path):
                numbers = [number for name in _LIMITS for number in _numbers(group / name)]
                if len(numbers) == 2 and min(numbers) > 0:  # otherwise there is no limit
                    yield numbers[0] / numbers[1]


def _with_parents(mount: Path, path: str) -> Iterator[Path]:
    """Yield the folders of a group and of those above it; inside a container some may not exist."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:count])


def _numbers(file: Path) -> list[int]:
    """Return the numbers in a file; none if it does not exist or says that there is no limit."""
    try:
        return [int(word) for word in file.read_text(encoding="utf-8").split()]
    except (OSError, ValueError):
        return []


def _from_environment() -> int | None:
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _seconds_of_steps(threads: int) -> float:
    """Return the median time of some small steps, after each of which threads wait for each other."""
    import torch

    torch.set_num_threads(threads)
    weights = torch.full((_SIZE, _SIZE), 1 / _SIZE)
    seconds = []
    for _ in range(_PROBES):
        states = torch.ones(_SIZE, _SIZE)
        start = time.perf_counter()
        for _ in range(_STEPS):
            states = torch.relu(states @ weights)
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]
