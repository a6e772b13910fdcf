"""Runs the cells that are missing, in this process or several at a time in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.experiments.cell import finished_cell, run_cell
from nlpcapsule.experiments.plan import Cell
from nlpcapsule.experiments.provenance import checked_out_commit
from nlpcapsule.experiments.table import Options


def run_cells(cells: Sequence[Cell], options: Options) -> None:
    """Runs what is missing; a cell that fails does not keep the others from running.

    Raises:
        NlpCapsuleError: Cells failed; it names them and what they said.
    """
    missing = [cell for cell in cells if finished_cell(cell, options.cells) is None]
    options.say(f"{len(cells) - len(missing)} of {len(cells)} cells are finished")
    commit = options.commit or checked_out_commit()
    failures = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        outcomes: Iterable[str | None] = (
            pool.map(lambda cell: _run_beside(cell, options, commit), missing)
            if options.jobs
            else (_run_here(cell, options, commit) for cell in missing)  # Ctrl-C stops this at once
        )
        for number, (cell, failure) in enumerate(zip(missing, outcomes, strict=True), start=1):
            outcome = "failed" if failure else "done"
            options.say(f"[{number}/{len(missing)}] {cell.title}: {outcome}")
            if failure:
                failures.append(f"{cell.title}: {failure}")
    if failures:
        raise NlpCapsuleError("cells failed, the others are kept:\n" + "\n".join(failures))


def _run_here(cell: Cell, options: Options, commit: str) -> str | None:
    try:
        run_cell(cell, options.data, options.cells, commit)
    except (NlpCapsuleError, OSError, RuntimeError, MemoryError) as error:  # torch's memory is a RuntimeError
        return str(error) or type(error).__name__
    return None


def _run_beside(cell: Cell, options: Options, commit: str) -> str | None:
    log = options.cells / f"{cell.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    data = [] if options.data is None else ["--data", str(options.data)]
    command = [sys.executable, "-m", "nlpcapsule.experiments", "cell", json.dumps(asdict(cell))]
    command += [str(options.cells), "--commit", commit, *data]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 0:
        log.unlink()
        return None
    said = log.read_text(encoding="utf-8").strip().splitlines()
    return f"{said[-1] if said else 'nothing was said'} (all of it: {log})"


def cell_from_json(text: str) -> Cell:
    """Reads what `_run_beside` passes on."""
    return Cell(**json.loads(text))


def load_finished(cells: Sequence[Cell], folder: Path) -> list[Cell]:
    """The cells that have been run."""
    return [cell for cell in cells if finished_cell(cell, folder) is not None]
