"""The record of a finished run, stored as one JSON file per run.

CELLS/DATA/NAME.json    the record
CELLS/DATA/NAME.npz     its metrics per document or question, for paired tests
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.training_time import LOWER_BOUND
from nlpcapsule.errors import DataError

# Field → its key in the JSON file, in the file's order.
_MEMORY_KEYS = {"gpu_memory_gib": "gpu memory GiB", "process_memory_gib": "process memory GiB"}
_RESULT_KEYS = {
    "figures": "figures",
    "network_only": "network alone",
    "selected_on": "selected on",
    "epochs": "epochs",
    "training_seconds": "training seconds",
    "is_lower_bound": LOWER_BOUND,
    "milliseconds_per_document": "milliseconds per document",
    "milliseconds_per_question": "milliseconds per question",
    "parameters": "parameters",
    "model_mib": "model MiB",
    "documents_by_iterations": "documents by routing iterations",
    "config": "config",
    "data": "data",
}
_SOURCE_KEYS = {"hardware": "hardware", "version": "nlpcapsule", "commit": "commit"}
_KEYS = {**_MEMORY_KEYS, **_RESULT_KEYS, **_SOURCE_KEYS}
_REQUIRED = ("figures", "selected_on", "epochs", "training_seconds", "config", "data", "hardware", "commit")
# Omitted where they do not apply.
_LABELS_ONLY = ("network_only", "milliseconds_per_document", "documents_by_iterations")
_ANSWERS_ONLY = ("milliseconds_per_question",)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The results of training and evaluating a system.

    Attributes:
        figures: Metric → value; for answers, part → metric → value.
        selected_on: Metric → value on the documents or questions that epochs were selected on.
        epochs: What training logged for each epoch.
        training_seconds: Seconds of all stretches of the training.
        is_lower_bound: Whether seconds of a killed stretch are missing.
        config: The whole configuration, without paths of this machine.
        data: The data set's fingerprint.
        parameters: Weights of the network; None for a lexical system.
        model_mib: Size of the model folder.
        milliseconds_per_document: Time to rank a document's labels; None for answers.
        milliseconds_per_question: Time to rank a question's candidates; None for labels.
        network_only: The network's metrics without its lexical system, if it has one.
        documents_by_iterations: Documents that took 0, 1, 2, … routing iterations.
        process_memory_gib: Peak memory of the process, if it is a different one.
    """

    figures: dict[str, Any]
    selected_on: dict[str, float]
    epochs: list[dict[str, Any]]
    training_seconds: float
    config: dict[str, Any]
    data: str
    is_lower_bound: bool = False
    parameters: int | None = None
    model_mib: float | None = None
    milliseconds_per_document: float | None = None
    milliseconds_per_question: float | None = None
    network_only: dict[str, float] | None = None
    documents_by_iterations: list[int] | None = None
    process_memory_gib: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunRecord(Measurement):
    """A finished run: its measurement, and everything needed to repeat it.

    Attributes:
        cell: The cell that was run.
        hardware: The machine.
        commit: The commit of the code.
        version: The version of nlpcapsule.
        gpu_memory_gib: Peak memory of the GPU, if used.
    """

    cell: Cell
    hardware: str
    commit: str
    version: str = ""
    gpu_memory_gib: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record as written to a file."""
        left_out = {*(_ANSWERS_ONLY if self.cell.kind == "labels" else _LABELS_ONLY)}
        if not self.is_lower_bound:
            left_out.add("is_lower_bound")
        values = {key: getattr(self, field) for field, key in _KEYS.items() if field not in left_out}
        return {"cell": self.cell.to_json(), **values}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Parse the output of `to_json`; missing optional fields of older files get their defaults.

        Raises:
            KeyError: If a required key is missing.
        """
        missing = next((_KEYS[field] for field in _REQUIRED if _KEYS[field] not in values), None)
        if missing is not None:
            raise KeyError(missing)
        fields = {field: values[key] for field, key in _KEYS.items() if key in values}
        return cls(cell=Cell.from_json(values["cell"]), **fields)

    def save(self, path: Path) -> None:
        """Write the record."""
        write_text(path, json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the output of `save`.

        Raises:
            DataError: If the file holds anything else.
        """
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(
                f"not the record of a finished run: {problem}", path, hint="remove the file to run it again"
            ) from None


def cell_path(cell: Cell, cells: Path) -> Path:
    """Return the path of a cell's record; metrics per document are stored next to it."""
    return cells / f"{cell.name}.json"


def finished_cell(cell: Cell, cells: Path) -> RunRecord | None:
    """Return the record of a cell, or None if it has not been run."""
    path = cell_path(cell, cells)
    return RunRecord.load(path) if path.exists() else None


def save_per_document(path: Path, figures: np.ndarray) -> None:
    """Write metrics per document next to a cell's record, compressed."""
    with atomic_path(path.with_suffix(".npz")) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, figures=figures)


def load_per_document(path: Path) -> np.ndarray:
    """Read the output of `save_per_document`: (metrics, documents)."""
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
        return np.atleast_2d(file["figures"])
