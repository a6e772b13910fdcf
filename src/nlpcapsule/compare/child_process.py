"""A child process: its log, its memory, and its end."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from nlpcapsule.processes import child_environment

POLL_SECONDS = 0.3  # between two checks of child processes
_STOP_SECONDS = 30  # that a process gets to end after a signal; a busy machine may need most of them


class ChildProcess:
    """A running command; its output goes to a log, but its standard error may go to the terminal."""

    def __init__(
        self, command: Sequence[str], log: Path, show_errors: bool = False, watches_memory: bool = False
    ) -> None:
        self.peak_bytes = 0  # of the process and its children, if `watches_memory`
        self.log, self._watches_memory = log, watches_memory
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
            return f"ended by signal {-self.code}{why} (full log: {self.log})"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1].removeprefix("error: ") if lines else f"ended with exit code {self.code}"
        return f"{last} (full log: {self.log})"

    def stop(self) -> None:
        """Stop it and its children; its checkpoints stay."""
        with suppress(psutil.Error):
            family = [self._process, *self._process.children(recursive=True)]
            for end in (psutil.Process.terminate, psutil.Process.kill):
                for member in family:
                    with suppress(psutil.Error):
                        end(member)
                _, family = psutil.wait_procs(family, timeout=_STOP_SECONDS)


def _memory(process: psutil.Process) -> int:
    """Return the bytes that a process and its children hold; shared pages count once, where known."""
    total = 0
    with suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                info = member.memory_full_info()
                total += getattr(info, "pss", info.rss)
    return total
