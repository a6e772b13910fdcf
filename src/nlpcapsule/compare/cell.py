"""A cell: one system on one data set with one seed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from nlpcapsule.config import Config


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
        files: Fingerprint of the files that the settings name; "" where the paths suffice.
    """

    kind: str
    data: str
    system: str
    model: str
    settings: dict[str, Any]
    seed: int
    fraction: float = 1.0
    files: str = ""

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
        hashed = [self.kind, settings, *([self.files] if self.files else [])]
        text = json.dumps(hashed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Parse the output of `to_json`; missing fields of older files get their defaults."""
        return cls(**fields)
