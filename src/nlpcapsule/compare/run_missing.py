"""Run what is missing of many runs, and keep each one that finishes.

Finished runs are skipped. The others run one after the other in this process, or several at a time in child
processes. A run that fails does not stop the others. Ctrl-C stops all of them; what they have written stays.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from nlpcapsule.compare.child_process import ChildProcess, EndedChild
from nlpcapsule.errors import NlpCapsuleError, out_of_memory

POLL_SECONDS = 0.3  # seconds between two checks of child processes


class Run(ABC):
    """One run: its name, whether it is finished, and how to run it.

    A subclass defines how it runs in this process (`run_here`), in a child process (`command`, `log`), or
    both.
    """

    watches_memory: ClassVar[bool] = False  # measuring a child's memory costs it a little time

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that progress and failures use; different for each run."""

    @abstractmethod
    def is_finished(self) -> bool:
        """Return whether there is nothing left to run."""

    def run_here(self) -> None:
        """Run in this process."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the command of a child process."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        """The file for a child's output; kept if the child fails."""
        raise NotImplementedError

    def failure_of(self, child: EndedChild) -> str | None:
        """Return why a child failed, or None; may complete what the child has written."""
        if child.code == 0:
            return None
        return f"{child.last_line or 'it printed nothing'} (full log: {self.log})"


@dataclass(frozen=True)
class RunProgress:
    """Progress messages.

    Attributes:
        say: Receives each message.
        finished: The noun for runs, as in "3 of 5 cells are finished".
        done: The message about a run that has just finished.
    """

    say: Callable[[str], None]
    finished: str = "cells are finished"
    done: str = "done"

    def counted(self, finished: int, total: int) -> None:
        """Report the number of runs, once, before the first run."""
        self.say(f"{finished} of {total} {self.finished}")

    def started(self, name: str) -> None:
        """Report that a run starts."""

    def ended(self, place: str, name: str, failure: str | None) -> None:
        """Report that a run has ended; `place` is as in "[2/7]"."""
        self.say(f"{place} {name}: {'failed' if failure else self.done}")


def run_missing(
    runs: Sequence[Run], progress: RunProgress, jobs: int = 0, show_errors: bool = False
) -> dict[str, str]:
    """Run what is not finished, in order.

    Args:
        runs: All runs.
        progress: Receives progress.
        jobs: Number of parallel child processes; 0 runs in this process.
        show_errors: Whether a child's standard error, its progress, goes to the terminal instead of its log.

    Returns:
        Name → reason, for each run that failed.
    """
    missing = [run for run in runs if not run.is_finished()]
    progress.counted(len(runs) - len(missing), len(runs))
    outcomes = _in_children(missing, jobs, show_errors, progress) if jobs else _here(missing, progress)
    failures: dict[str, str] = {}
    with closing(outcomes):  # stops child processes, whatever happens here
        for number, (run, failure) in enumerate(outcomes, start=1):
            progress.ended(f"[{number}/{len(missing)}]", run.name, failure)
            if failure:
                failures[run.name] = failure
    return failures


def raise_failures(failures: dict[str, str], what: str) -> None:
    """Raise one error that names every failed run, if any.

    Args:
        failures: As `run_missing` returns them.
        what: The first line, as in "cells failed".
    """
    if failures:
        told = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"{what}, the others are kept:\n{told}")


def _here(missing: Sequence[Run], progress: RunProgress) -> Generator[tuple[Run, str | None], None, None]:
    for run in missing:
        progress.started(run.name)
        try:
            run.run_here()
        except (NlpCapsuleError, OSError, RuntimeError, MemoryError) as error:  # torch: RuntimeError
            yield run, out_of_memory(error) or str(error) or type(error).__name__
        else:
            yield run, None


def _in_children(
    missing: Sequence[Run], jobs: int, show_errors: bool, progress: RunProgress
) -> Generator[tuple[Run, str | None], None, None]:
    waiting = list(missing)
    active: list[tuple[Run, ChildProcess]] = []
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                run = waiting.pop(0)
                progress.started(run.name)
                active.append((run, start_child(run, show_errors)))
            for run, child in [pair for pair in active if pair[1].has_ended()]:
                active.remove((run, child))
                yield run, _outcome(run, child)
            if active:
                time.sleep(POLL_SECONDS)
    finally:
        for _, child in active:
            child.stop()


def start_child(run: Run, show_errors: bool = False) -> ChildProcess:
    """Start a run in a child process."""
    return ChildProcess(run.command(), run.log, show_errors, run.watches_memory)


def _outcome(run: Run, child: ChildProcess) -> str | None:
    failure = run.failure_of(child.ended())
    if failure is None:
        run.log.unlink()
    return failure
