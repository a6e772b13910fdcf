"""Run what is missing of many runs, and keep each one that finishes.

Finished runs are skipped. The others run in child processes, several at a time. A run that fails does not
stop the others. Ctrl-C stops all of them; what they have written stays.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nlpcapsule.compare.child_process import POLL_SECONDS, ChildProcess


@dataclass(frozen=True)
class Run:
    """One run in a child process."""

    name: str  # in messages; different for each run
    is_finished: Callable[[], bool]  # nothing is left to run
    command: Sequence[str]
    log: Path  # of the child's output; kept if it fails
    ended: Callable[[ChildProcess], None] = lambda child: None  # may complete what the child has written
    watches_memory: bool = False  # which costs a child a little time

    def start(self, show_errors: bool = False) -> ChildProcess:
        """Start it in a child process."""
        return ChildProcess(self.command, self.log, show_errors, self.watches_memory)


def run_missing(
    runs: Sequence[Run], what: str, say: Callable[[str], None], jobs: int = 1, show_errors: bool = False
) -> dict[str, str]:
    """Run what is not finished, in order; return name → reason for each run that failed.

    `jobs` child processes run in parallel. With `show_errors`, a child's standard error, its progress, goes
    to the terminal instead of its log. `what` is the noun: "3 of 5 cells are finished".
    """
    missing = [run for run in runs if not run.is_finished()]
    say(f"{len(runs) - len(missing)} of {len(runs)} {what} are finished")
    failures: dict[str, str] = {}
    with closing(_outcomes(missing, say, jobs, show_errors)) as outcomes:  # stops children, whatever happens
        for number, (run, failure) in enumerate(outcomes, start=1):
            say(f"[{number}/{len(missing)}] {run.name}: {failure or 'done'}")
            if failure:
                failures[run.name] = failure
    return failures


def _outcomes(
    missing: Sequence[Run], say: Callable[[str], None], jobs: int, show_errors: bool
) -> Generator[tuple[Run, str | None], None, None]:
    """Yield each run when it has ended, and why it failed."""
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
                if run.is_finished() and run.log.is_file():
                    run.log.unlink()
                yield run, None if run.is_finished() else child.last_words
            if active:
                time.sleep(POLL_SECONDS)
    finally:
        for _, child in active:
            child.stop()
