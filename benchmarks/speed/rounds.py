"""Time systems in turn, round by round, so that a busy machine slows all of them alike."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Timing:
    """The times of one system, one per round.

    Attributes:
        wall: Seconds on the clock.
        cpu: Seconds of CPU time, over all threads.
    """

    wall: list[float]
    cpu: list[float]

    def ratio(self, reference: Timing) -> float:
        """Return the median over rounds of the ratio to a reference's time on the clock."""
        return median(own / other for own, other in zip(self.wall, reference.wall, strict=True))

    def cpu_ratio(self, reference: Timing) -> float:
        """Return the same for CPU time."""
        return median(own / other for own, other in zip(self.cpu, reference.cpu, strict=True))


def time_in_turn(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time functions in turn, after a round that is not counted.

    Args:
        runs: Name → what is timed.
        rounds: Rounds that are counted.
    """
    return medians_in_turn({name: [run] for name, run in runs.items()}, rounds)


def medians_in_turn(runs: Mapping[str, Sequence[Callable[[], object]]], rounds: int) -> dict[str, Timing]:
    """Time several functions of each system one after the other; the times of a round are their medians.

    Args:
        runs: Name → what is timed.
        rounds: Rounds that are counted, after one that is not.
    """
    timings = {name: Timing([], []) for name in runs}
    for number in range(rounds + 1):
        for name, several in runs.items():
            walls, cpus = zip(*map(_times, several), strict=True)
            if number:
                timings[name].wall.append(median(walls))
                timings[name].cpu.append(median(cpus))
    return timings


def _times(run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds on the clock and the CPU time of a run."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


@dataclass(frozen=True)
class ProcessCost:
    """What one process took.

    Attributes:
        cpu_seconds: Its CPU time, in user and system mode.
        peak_memory_mib: The most memory that it held.
    """

    cpu_seconds: float
    peak_memory_mib: float


# The process reports on itself: its parent would see its own memory of before it became another program.
# It imports nothing of the package first, or the packages that this needs would be counted too.
_REPORTING = """
import atexit, re, sys, time
def report():
    with open("/proc/self/status", encoding="utf-8") as status:
        peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1])
    print(time.process_time(), peak / 2**10, file=sys.stderr)
atexit.register(report)
from nlpcapsule.__main__ import main
main()
"""


def command_cost(*arguments: str) -> ProcessCost:
    """Run `nlpcapsule` with arguments and return what the process took.

    Raises:
        CalledProcessError: If it fails.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", _REPORTING, *arguments], capture_output=True, text=True, check=True
    )
    cpu_seconds, peak_memory = done.stderr.split()[-2:]
    return ProcessCost(float(cpu_seconds), float(peak_memory))
