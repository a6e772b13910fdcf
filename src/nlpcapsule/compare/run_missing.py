"""Run what is missing of many runs, and keep each one that finishes.

Finished runs are skipped. The others run in child processes, several at a time. A run that fails does not
stop the others. Ctrl-C stops all of them; what they have written stays.
"""

import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.processes import child_environment

POLL_SECONDS = 0.3  # seconds between two checks of child processes
_STOP_SECONDS = 5  # seconds that a process gets to end after a signal


class ChildProcess:
    """A running command; its output goes to a log, but its standard error may go to the terminal."""

    def __init__(
        self, command: Sequence[str], log: Path, show_errors: bool = False, watches_memory: bool = False
    ) -> None:
        self.peak_bytes = 0  # of the process and its children, if `watches_memory`
        self._log, self._watches_memory = log, watches_memory
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            errors = None if show_errors else file
            self._process = psutil.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=errors, env=child_environment()
            )

    def has_ended(self) -> bool:
        """Return whether it has ended; until then, measure its memory if enabled."""
        if self._process.poll() is not None:
            return True
        if self._watches_memory:
            self.peak_bytes = max(self.peak_bytes, _memory(self._process))
        return False

    @property
    def code(self) -> int:
        """The exit code of an ended process; negative for a signal."""
        return int(self._process.returncode)

    @property
    def last_words(self) -> str:
        """How an ended process failed: by a signal, or by the last line of its log."""
        if self.code < 0:
            why = ", perhaps out of memory" if self.code == -9 else ""
            return f"ended by signal {-self.code}{why} (full log: {self._log})"
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1].removeprefix("error: ") if lines else f"ended with exit code {self.code}"
        return f"{last} (full log: {self._log})"

    def remove_log(self) -> None:
        """Remove the log of a process that has succeeded."""
        self._log.unlink()

    def stop(self) -> None:
        """Stop it and its children; its checkpoints stay."""
        with suppress(psutil.Error):
            family = [self._process, *self._process.children(recursive=True)]
            for end in (psutil.Process.terminate, psutil.Process.kill):
                for member in family:
                    with suppress(psutil.Error):
                        end(member)
                _, family = psutil.wait_procs(family, timeout=_STOP_SECONDS)


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


def raise_failures(failures: dict[str, str], what: str) -> None:
    """Raise one error that names every failed run, if any."""
    if failures:
        reasons = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"{what}:\n{reasons}")


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
                if run.is_finished():
                    child.remove_log()
                yield run, None if run.is_finished() else child.last_words
            if active:
                time.sleep(POLL_SECONDS)
    finally:
        for _, child in active:
            child.stop()


def _memory(process: psutil.Process) -> int:
    """Return the bytes that a process and its children hold; shared pages count once, where known."""
    total = 0
    with suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                info = member.memory_full_info()
                total += getattr(info, "pss", info.rss)
    return total
