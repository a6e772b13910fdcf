"""What every table and figure has in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nlpcapsule.compare.table import Record

COMMAND = "python -m benchmarks reproduce"


@dataclass(frozen=True)
class Options:
    """How a table is made.

    Attributes:
        data: The folder of real data; None where the embedded sample is enough.
        output: Folder for JSON, Markdown, plots and finished cells.
        budget: "smoke" or "full".
        seeds: Seeds per system; None for as many as the plan says.
        systems: Only these systems; all of them if empty.
        jobs: Cells at a time, each in a child process; 0 runs them in this process.
        run: Whether missing cells are run; if not, the table has what is finished.
        commit: The commit, where there is no checkout to ask.
        say: Receives messages.
    """

    output: Path
    data: Path | None = None
    budget: str = "full"
    seeds: int | None = None
    systems: tuple[str, ...] = ()
    jobs: int = 0
    run: bool = True
    commit: str = ""
    say: Callable[[str], None] = lambda text: None

    @property
    def cells(self) -> Path:
        """The folder of finished cells; smoke runs have their own."""
        return self.output / "cells" / self.budget


@dataclass(frozen=True)
class Table:
    """A table or a figure.

    Attributes:
        name: What the command line calls it.
        make: Runs what is missing and returns the record.
        markdown: The record as a page.
        plots: The record as pictures: file stem → SVG.
    """

    name: str
    make: Callable[[Options], Record]
    markdown: Callable[[Record], str]
    plots: Callable[[Record], dict[str, str]]
