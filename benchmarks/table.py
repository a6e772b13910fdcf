"""Types that all tables and figures share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nlpcapsule.compare.table import Record

COMMAND = "python -m benchmarks reproduce"


@dataclass(frozen=True)
class Options:
    """Options of making a table.

    Attributes:
        data: The folder of real data; None if the embedded sample is enough.
        output: Folder for JSON, Markdown, plots and finished cells.
        budget: "smoke" or "full".
        seeds: Seeds per system; None for the plan's number.
        systems: Only these systems; all of them if empty.
        jobs: Parallel cells, each in a child process; 0 runs them in this process.
        run: Whether missing cells are run; if not, the table has what is finished.
        commit: The commit, if there is no checkout to read it from.
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
        """The folder of finished cells; smoke runs have a separate one."""
        return self.output / "cells" / self.budget


@dataclass(frozen=True)
class Table:
    """A table or a figure.

    Attributes:
        name: Its name on the command line.
        make: Runs missing parts and returns the record.
        markdown: The record as a page.
        plots: The record as pictures: file stem → SVG.
    """

    name: str
    make: Callable[[Options], Record]
    markdown: Callable[[Record], str]
    plots: Callable[[Record], dict[str, str]]
