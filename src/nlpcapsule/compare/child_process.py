"""A command in a child process with a log, which isolates its memory and crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from nlpcapsule.processes import child_environment, end_with_parent

_STOP_SECONDS = 5  # seconds that a process gets to end after a signal


class ChildProcess:
    """A running command.

    Args:
        command: The command.
        log: The file for its output.
        show_errors: Whether standard error goes to the terminal instead of the log.
        watches_memory: Whether `has_ended` measures the memory of the process and its children.
    """

    def __init__(
        self, command: Sequence[str], log: Path, show_errors: bool = False, watches_memory: bool = False
    ) -> None:
        self.peak_bytes = 0  # of the process and its children, if they are measured
        self._log, self._watches_memory = log, watches_memory
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            self._process = psutil.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=None if show_errors else file,
                env=child_environment(),
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


def leave_signals_to_parent() -> None:
    """Set up a child's signals: end with the parent, ignore Ctrl-C, turn SIGTERM into an exception.

    As an exception, SIGTERM allows the training time so far to be recorded.
    """
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = os.getpid()

    def end(number: int, _: Any) -> None:
        if os.getpid() != process:
            os._exit(128 + number)  # a forked child has nothing to record
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _memory(process: psutil.Process) -> int:
    """Return the bytes that a process and its children hold; shared pages count once, where known."""
    total = 0
    with suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                info = member.memory_full_info()
                total += getattr(info, "pss", info.rss)
    return total
