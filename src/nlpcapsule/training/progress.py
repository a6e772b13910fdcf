"""Progress bars of training and of ranking."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class TrainingProgress:
    """Show a bar per stage on a terminal, a line per epoch elsewhere, or nothing if quiet.

    It prints to standard error by default, which keeps standard output clean.
    """

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        quiet = quiet or int(os.environ.get("RANK", "0")) > 0  # only one of several processes prints
        self.console = console or Console(file=sys.stderr, quiet=quiet)
        self._live = self.console.is_terminal and not quiet
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self.console,
            disable=not self._live,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def start(self, title: str, total: int | None, done: int = 0) -> None:
        """Start a stage of `total` batches (None: unknown), `done` of which an earlier run has finished."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(title, total=total, completed=done, figures="")

    def parts(self, done: int, total: int | None = None, figures: str = "") -> None:
        """Update the number of finished parts of a stage and, if given, their total and latest figures."""
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total, figures=figures)

    def advance(self, count: int) -> None:
        """Count further parts as done."""
        if self._task is not None:
            self._bar.advance(self._task, count)

    def epoch(self, title: str, record: Mapping[str, Any]) -> None:
        """Report the end of an epoch."""
        figures = "  ".join(
            f"{name} {value:.4f}"
            for name, value in record.items()
            if isinstance(value, float) and name != "seconds"
        )
        self.say(f"{title}: epoch {record['epoch']}/{record['epochs']}  {figures}")
