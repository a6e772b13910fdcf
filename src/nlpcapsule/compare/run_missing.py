"""Run what is missing of many runs, and keep each one that finishes.

Finished runs are skipped. The others run one after the other in this process, or several at a time in child
processes. A run that fails does not stop the others. Ctrl-C stops all of them; what they have written stays.
"""

import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from nlpcapsule.errors import NlpCapsuleError, out_of_memory
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
        """How an ended process failed: by a signal, or the last line of its log."""
        if self.code < 0:
            return f"ended by signal {-self.code}" + (", perhaps out of memory" if self.code == -9 else "")
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].removeprefix("error: ") if lines else f"ended with exit code {self.code}"

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
    """One run, in this process (`run_here`) or in a child process (`command`, `log`)."""

    name: str  # in messages; different for each run
    is_finished: Callable[[], bool]  # nothing is left to run
    run_here: Callable[[], object] = lambda: None
    command: Sequence[str] = ()
    log: Path = Path()  # of a child's output; kept if it fails
    ended: Callable[[ChildProcess], None] = lambda child: None  # may complete what the child has written
    watches_memory: bool = False  # which costs a child a little time

    def start(self, show_errors: bool = False) -> ChildProcess:
        """Start it in a child process."""
        return ChildProcess(self.command, self.log, show_errors, self.watches_memory)


Outcomes = Generator[tuple[Run, str | None], None, None]  # a run, and why it failed


def run_missing(
    runs: Sequence[Run], what: str, say: Callable[[str], None], jobs: int = 0, show_errors: bool = False
) -> dict[str, str]:
    """Run what is not finished, in order; return name → reason for each run that failed.

    `jobs` child processes run in parallel; 0 runs in this process. With `show_errors`, a child's standard
    error, its progress, goes to the terminal instead of its log. `what` is the noun: "3 of 5 cells are
    finished".
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
    """Raise one error that names every failed run, if any."""
    if failures:
        reasons = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"{what}:\n{reasons}")


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
                failure = None if run.is_finished() else f"{child.last_words} (full log: {run.log})"
                if failure is None:
                    run.log.unlink()
                yield run, failure
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
