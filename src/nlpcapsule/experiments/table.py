"""What every table and figure of `nlpcapsule reproduce` has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]  # what is written as JSON


@dataclass(frozen=True)
class Options:
    """How a table is to be made.

    Attributes:
        data: The folder of real data; None where the embedded sample is enough.
        out: Where JSON, Markdown, plots and finished cells go.
        budget: "smoke" or "full".
        seeds: Seeds per system; None as the plan says.
        systems: Only these systems; all of them if empty.
        jobs: Cells at a time, each in a process of its own; 0 runs them in this process.
        run: Whether missing cells are run; without, what is finished is put together.
        commit: The commit, where there is no checkout to ask.
        say: Told what happens.
    """

    out: Path
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
        """Where finished cells are kept: those of a smoke run apart from real ones."""
        return self.out / "cells" / self.budget


@dataclass(frozen=True)
class Table:
    """A table or a figure.

    Attributes:
        name: What the command line calls it.
        make: Runs what is missing and gives the record.
        markdown: The record as a page.
        plots: The record as pictures: file stem → SVG.
    """

    name: str
    make: Callable[[Options], Record]
    markdown: Callable[[Record], str]
    plots: Callable[[Record], dict[str, str]]


def markdown_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table; the first column to the left, the others to the right, what is missing empty."""
    lines = ["| " + " | ".join(columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    lines += ["| " + " | ".join(row.get(column, "") for column in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"
