"""One system of a comparison, trained and measured in the process that calls this."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree

import numpy as np

from nlpcapsule import __version__
from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.compare.prepared import load_questions
from nlpcapsule.experiments import cell as tables
from nlpcapsule.experiments.cell import cell_path, run_cell
from nlpcapsule.experiments.memory import peak_process_memory
from nlpcapsule.experiments.plan import Cell
from nlpcapsule.experiments.provenance import hardware
from nlpcapsule.experiments.table import Record
from nlpcapsule.model_folder import MANIFEST
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def run_system(cell: Cell, data: Path, cells: Path, commit: str, python: str | None = None) -> None:
    """Trains a system and writes its record; a training that was stopped goes on.

    Args:
        cell: The system.
        data: The folder that holds the prepared data set under `cell.data`.
        cells: Where the record and the figures per document go.
        commit: The commit the code is of.
        python: The Python that has libpecos.
    """
    if cell.kind == "labels":
        run_cell(cell, data, cells, commit, python)
    else:
        _run_answers(cell, data, cells, commit)


def _run_answers(cell: Cell, data: Path, cells: Path, commit: str) -> None:
    work = cells / f"{cell.name}.work"
    resume = (work / MANIFEST).exists() or (work / "checkpoint" / "run.json").exists()
    if not resume:
        rmtree(work, ignore_errors=True)  # of a run that was stopped before its first checkpoint
    with TrainingProgress() as progress:
        parts = load_questions(data / cell.data)
        record, precisions = tables.run_answers(cell, parts, RunFolder(work, resume), progress)
    _write(cell, cells, record, precisions, commit)
    rmtree(work, ignore_errors=True)


def _write(cell: Cell, cells: Path, record: Record, each: np.ndarray, commit: str) -> None:
    """Writes a record like those of the paper's tables, and each document's figures beside it."""
    whole = {
        "cell": asdict(cell),
        "gpu memory GiB": None,
        "process memory GiB": round(peak_process_memory() / 2**30, 2),
        **record,
        "hardware": hardware(),
        "nlpcapsule": __version__,
        "commit": commit,
    }
    path = cell_path(cell, cells)
    with atomic_path(path.with_suffix(".npy")) as temporary, temporary.open("wb") as file:
        np.save(file, each)
    write_text(path, json.dumps(whole, indent=1) + "\n")
