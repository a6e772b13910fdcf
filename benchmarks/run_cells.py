"""Run the missing cells of a table, in this process or several at a time in child processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from benchmarks.cell import Cell, cell_path
from benchmarks.checkout_command import checkout_command
from benchmarks.run_cell import run_cell
from benchmarks.run_here import run_here
from benchmarks.run_missing import Run, run_missing
from benchmarks.table import Options
from nlpcapsule.compare.comparison import raise_failures
from nlpcapsule.provenance import checked_out_commit


def run_cells(cells: Sequence[Cell], options: Options) -> None:
    """Run missing cells; a failed cell does not stop the others.

    Raises:
        NlpCapsuleError: If cells failed; the message names them and the reasons.
    """
    commit = options.commit or checked_out_commit()
    runs = [_run(cell, options, commit) for cell in cells]
    raise_failures(
        run_missing(runs, "cells", options.say, options.jobs or 1),
        "cells failed, the others are kept; the same command tries again",
    )


def _run(cell: Cell, options: Options, commit: str) -> Run:
    path = cell_path(cell, options.cells)
    if not options.jobs:
        run = partial(run_cell, cell, options.data, options.cells, commit)
        return run_here(cell.title, path.exists, run)
    command = [*checkout_command("benchmarks"), "cell", json.dumps(asdict(cell))]
    command += [str(options.cells), "--commit", commit]
    command += [] if options.data is None else ["--data", str(options.data)]
    return Run(cell.title, path.exists, command, path.with_suffix(".log"))
