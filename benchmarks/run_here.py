"""Runs in this process, for `run_missing`: they share data, and a debugger sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.run_missing import Run
from nlpcapsule.compare.child_process import ChildProcess
from nlpcapsule.errors import NlpCapsuleError, out_of_memory


class Ended(ChildProcess):
    """A run that has ended in this process, and why it failed."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure

    def has_ended(self) -> bool:
        """Return True."""
        return True

    @property
    def last_words(self) -> str:
        """The reason of the failure."""
        return self.failure


@dataclass(frozen=True)
class RunHere(Run):
    """A run in this process: `start` returns when it has ended."""

    run: Callable[[], object] = lambda: None

    def start(self, show_errors: bool = False) -> ChildProcess:
        """Run it; errors that a user or the machine causes are its failure."""
        try:
            self.run()
        except (NlpCapsuleError, OSError, RuntimeError, MemoryError) as error:  # torch: RuntimeError
            return Ended(out_of_memory(error) or str(error) or type(error).__name__)
        return Ended()


def run_here(name: str, is_finished: Callable[[], bool], run: Callable[[], object]) -> Run:
    """Return a run in this process."""
    return RunHere(name, is_finished, (), Path(), run=run)
