"""Run the missing cells of a table, in this process or several at a time in child processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.run_cell import run_cell
from benchmarks.table import Options
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.provenance import checked_out_commit
from nlpcapsule.compare.run_missing import Run, RunProgress, raise_failures, run_missing
from nlpcapsule.compare.run_record import cell_path
from nlpcapsule.processes import module_command

CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True)
class CellRun(Run):
    """One cell of a table."""

    cell: Cell
    options: Options
    commit: str

    @property
    def name(self) -> str:
        """The cell's title."""
        return self.cell.title

    @property
    def log(self) -> Path:
        """The log file, next to the record."""
        return self.options.cells / f"{self.cell.name}.log"

    def is_finished(self) -> bool:
        """Return whether the record has been written."""
        return cell_path(self.cell, self.options.cells).exists()

    def run_here(self) -> None:
        """Run in this process."""
        run_cell(self.cell, self.options.data, self.options.cells, self.commit)

    def command(self) -> list[str]:
        """Return the command of the child process."""
        words = [*module_command("benchmarks", CHECKOUT), "cell", json.dumps(self.cell.to_json())]
        words += [str(self.options.cells), "--commit", self.commit]
        return words + ([] if self.options.data is None else ["--data", str(self.options.data)])


def run_cells(cells: Sequence[Cell], options: Options) -> None:
    """Run missing cells; a failed cell does not stop the others.

    Raises:
        NlpCapsuleError: If cells failed; the message names them and the reasons.
    """
    commit = options.commit or checked_out_commit()
    runs = [CellRun(cell, options, commit) for cell in cells]
    failures = run_missing(runs, RunProgress(options.say, "cells are finished"), options.jobs)
    raise_failures(failures, "cells failed")
