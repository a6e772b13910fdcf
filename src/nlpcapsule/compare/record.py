"""The record of a finished run.

NAME.json    the record
NAME.npz     its metrics per document or question, for paired tests
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.errors import DataError

LOWER_BOUND = "training seconds are a lower bound"  # in a record: a stopped training was resumed


def save_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record."""
    write_text(path, json.dumps(record, indent=1) + "\n")


def load_record(path: Path) -> dict[str, Any]:
    """Read the output of `save_record`; anything else is a DataError."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "figures" in record:
            return record
        problem = "figures are missing"
    except ValueError as error:
        problem = str(error)
    raise DataError(f"not the record of a finished run: {problem}", path, hint="remove it to run it again")


def save_per_document(path: Path, figures: np.ndarray) -> None:
    """Write metrics per document next to a record, compressed."""
    with atomic_path(path.with_suffix(".npz")) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, figures=figures)


def load_per_document(path: Path) -> np.ndarray:
    """Read the output of `save_per_document`: (metrics, documents)."""
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
        return np.atleast_2d(file["figures"])
