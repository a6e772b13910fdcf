"""Run a cell in a work folder, write its record, and remove the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeAlias

import numpy as np
import torch

from nlpcapsule import __version__
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.memory import peak_process_memory
from nlpcapsule.compare.provenance import hardware
from nlpcapsule.compare.run_record import Measurement, RunRecord, cell_path, save_per_document
from nlpcapsule.compare.training_time import training_time
from nlpcapsule.config import Config
from nlpcapsule.model_folder import MANIFEST
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

Measured: TypeAlias = tuple[Measurement, np.ndarray]  # the metrics, and those of each document

_PATHS = ("vectors", "tokenizer", "label_names", "path")  # settings that name a file or a folder


def run_and_record(
    cell: Cell, cells: Path, commit: str, measure: Callable[[RunFolder, TrainingProgress], Measured]
) -> RunRecord:
    """Train and measure a cell, and write its record; a stopped training is resumed.

    Args:
        cell: The cell to run.
        cells: Folder of records; metrics per document are written next to the record.
        commit: The commit of the code.
        measure: Trains the system in a work folder, or resumes its training, and measures it.
    """
    path = cell_path(cell, cells)
    work = cells / f"{cell.name}.work"
    resume = (work / MANIFEST).exists() or (work / "checkpoint" / "run.json").exists()
    if not resume:
        rmtree(work, ignore_errors=True)  # of a run that was stopped before its first checkpoint
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with TrainingProgress() as progress:
        measured, per_document = measure(RunFolder(work, resume), progress)
    if measured.process_memory_gib is None:
        measured = replace(measured, process_memory_gib=round(peak_process_memory() / 2**30, 2))
    record = RunRecord(
        **vars(measured),
        cell=cell,
        hardware=hardware(),
        commit=commit,
        version=__version__,
        gpu_memory_gib=_gpu_memory(),
    )
    save_per_document(path, per_document)
    record.save(path)
    rmtree(work, ignore_errors=True)
    return record


def epoch_history(folder: Path) -> list[dict[str, Any]]:
    """Return what training logged for each epoch."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def is_resumed(folder: RunFolder) -> bool:
    """Return whether a training was stopped in this folder and will be resumed."""
    return (folder.checkpoint / "run.json").exists()


def training_seconds(folder: Path) -> dict[str, Any]:
    """Return the seconds of all stretches of a training, and whether they are a lower bound.

    For a killed stretch, only the seconds of its finished epochs are known.
    """
    known = training_time(folder)
    seconds = max(known.seconds, sum(epoch["seconds"] for epoch in epoch_history(folder)))
    return {"training_seconds": round(seconds, 1), "is_lower_bound": known.killed}


def portable_config(config: Config) -> dict[str, Any]:
    """Return the configuration with file names in place of absolute paths."""
    settings: dict[str, Any] = json.loads(config.model_dump_json())
    return _with_file_names(settings)


def _with_file_names(section: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _with_file_names(value)
        if isinstance(value, dict)
        else (Path(value).name if value and key in _PATHS else value)
        for key, value in section.items()
    }


def with_encoder(config: Config, encoder: Path) -> Config:
    """Return the configuration with a transformer's folder, if it uses one and the folder exists."""
    if config.transformer is None or not encoder.is_dir():
        return config
    return config.with_network(config.network.with_transformer(str(encoder)))


def parameter_count(model: LabelModel | AnswerModel) -> int | None:
    """Return the number of weights of a network; None for a lexical system."""
    return None if model.network is None else sum(weights.numel() for weights in model.network.parameters())


def folder_mib(folder: Path) -> float:
    """Return the size of all files in a folder."""
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20, 2)


def _gpu_memory() -> float | None:
    if not torch.cuda.is_available():
        return None
    return round(torch.cuda.max_memory_allocated() / 2**30, 2)
