"""Run what is missing of many runs, and keep each one that finishes.

Finished runs are skipped. The others run one after the other in this process, or several at a time in child
processes. A run that fails does not stop the others. Ctrl-C stops all of them; what they have written stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nlpcapsule.compare.child_process import ChildProcess
from nlpcapsule.errors import NlpCapsuleError, out_of_memory

POLL_SECONDS = 0.3  # seconds between two checks of child processes

Outcomes = Generator[tuple["Run", str | None], None, None]  # a run, and why it failed


@dataclass(frozen=True)
class Run:
    """One run, in this process (`run_here`) or in a child process (`command`, `log`).

    Attributes:
        name: Its name in messages; different for each run.
        is_finished: Returns whether there is nothing left to run.
        run_here: Runs it in this process.
        command: The command of a child process.
        log: The file for a child's output; kept if the child fails.
        ended: Called with an ended child; may complete what the child has written.
        watches_memory: Whether to measure a child's memory, which costs it a little time.
    """

    name: str
    is_finished: Callable[[], bool]
    run_here: Callable[[], object] = lambda: None
    command: Sequence[str] = ()
    log: Path = Path()
    ended: Callable[[ChildProcess], None] = lambda child: None
    watches_memory: bool = False

    def start(self, show_errors: bool = False) -> ChildProcess:
        """Start it in a child process."""
        return ChildProcess(self.command, self.log, show_errors, self.watches_memory)


def run_missing(
    runs: Sequence[Run], what: str, say: Callable[[str], None], jobs: int = 0, show_errors: bool = False
) -> dict[str, str]:
    """Run what is not finished, in order.

    Args:
        runs: All runs.
        what: The noun for runs in messages, as in "3 of 5 cells are finished".
        say: Receives messages.
        jobs: Number of parallel child processes; 0 runs in this process.
        show_errors: Whether a child's standard error, its progress, goes to the terminal instead of its log.

    Returns:
        Name → reason, for each run that failed.
    """
    missing = [run for run in runs if not run.is_finished()]
    say(f"{len(runs) - len(missing)} of {len(runs)} {what} are finished")
    outcomes = _in_children(missing, say, jobs, show_errors) if jobs else _here(missing, say)
    failures: dict[str, str] = {}
    with closing(outcomes):  # stops child processes, whatever happens here
        for number, (run, failure) in enumerate(outcomes, start=1):
            say(f"[{number}/{len(missing)}] {run.name}: {failure or 'done'}")
            if failure:
                failures[run.name] = failure
    return failures


def raise_failures(failures: dict[str, str], what: str) -> None:
    """Raise one error that names every failed run, if any; `what` is as in `run_missing`."""
    if failures:
        reasons = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"{what} failed, the others are kept; the same command tries again:\n{reasons}")


def _here(missing: Sequence[Run], say: Callable[[str], None]) -> Outcomes:
    for run in missing:
        say(f"{run.name}: started")
        try:
            run.run_here()
        except (NlpCapsuleError, OSError, RuntimeError, MemoryError) as error:  # torch: RuntimeError
            yield run, out_of_memory(error) or str(error) or type(error).__name__
        else:
            yield run, None


def _in_children(
    missing: Sequence[Run], say: Callable[[str], None], jobs: int, show_errors: bool
) -> Outcomes:
    waiting = list(missing)
    active: list[tuple[Run, ChildProcess]] = []
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                run = waiting.pop(0)
                say(f"{run.name}: started")
                active.append((run, run.start(show_errors)))
            for run, child in [pair for pair in active if pair[1].has_ended()]:
                active.remove((run, child))
                run.ended(child)
                yield run, _failure(run, child)
            if active:
                time.sleep(POLL_SECONDS)
    finally:
        for _, child in active:
            child.stop()


def _failure(run: Run, child: ChildProcess) -> str | None:
    """Return why a run failed, or None after removing its log."""
    if run.is_finished():
        run.log.unlink()
        return None
    return f"{child.last_words} (full log: {run.log})"
