"""A cell: one system on one data set with one seed, and the record of a finished one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from benchmarks.run_record import RunRecord
from nlpcapsule.config import Config

_PATHS = ("vectors", "tokenizer", "label_names", "path")  # settings that name a file or a folder


@dataclass(frozen=True)
class Cell:
    """One run: a system on a data set with a seed.

    Attributes:
        kind: "labels" or "answers".
        data: The data set's name.
        system: The system's name in the table.
        model: The model's name in the configuration.
        settings: Settings that differ from the model's defaults.
        seed: The seed.
        fraction: Fraction of the training documents that is used.
    """

    kind: str
    data: str
    system: str
    model: str
    settings: dict[str, Any]
    seed: int
    fraction: float = 1.0

    @property
    def config(self) -> Config:
        """The whole configuration."""
        return Config.build(self.kind, self.model, overrides={**self.settings, "training.seed": self.seed})

    @property
    def title(self) -> str:
        """The name that messages use."""
        part = "" if self.fraction == 1.0 else f"{self.fraction:.0%} of "
        return f"{self.system} on {part}{self.data}, seed {self.seed}"

    @property
    def name(self) -> str:
        """The record's path, relative to the folder of cells and without a suffix.

        The system's name in a table is not part of it, so that tables can share identical runs.
        """
        part = "" if self.fraction == 1.0 else f"-{100 * self.fraction:.0f}percent"
        return f"{self.data}/{self.model}{part}-{self.fingerprint}-seed{self.seed}"

    @property
    def fingerprint(self) -> str:
        """Hash of the settings, except for the checkpoint interval, which does not change results."""
        settings = {key: value for key, value in self.settings.items() if key != "checkpoint_epochs"}
        text = json.dumps([self.kind, settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


class CellRecord(RunRecord):
    """The record of a cell, without paths of the machine it was run on."""

    cell: Cell
    network_only: dict[str, Any] | None = Field(None, alias="network alone")  # metrics of a hybrid's network

    @classmethod
    def of(cls, cell: Cell, record: dict[str, Any], **more: Any) -> Self:
        """Return the record of a cell's run, with more fields."""
        config = _with_file_names(record["config"])
        return cls.model_validate({"cell": asdict(cell), **record, "config": config, **more})


def cell_path(cell: Cell, cells: Path) -> Path:
    """Return the path of a cell's record; metrics per document are stored next to it."""
    return cells / f"{cell.name}.json"


def finished_cell(cell: Cell, cells: Path) -> CellRecord | None:
    """Return the record of a cell, or None if it has not been run."""
    path = cell_path(cell, cells)
    return CellRecord.load(path) if path.exists() else None


def _with_file_names(section: dict[str, Any]) -> dict[str, Any]:
    """Return settings with file names in place of absolute paths."""
    return {
        key: _with_file_names(value)
        if isinstance(value, dict)
        else (Path(value).name if value and key in _PATHS else value)
        for key, value in section.items()
    }
