"""The record of a finished run.

NAME.json    the record
NAME.npz     its metrics per document or question, for paired tests
"""

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.errors import DataError

LOWER_BOUND = "training seconds are a lower bound"


class RunRecord(BaseModel):
    """What was trained and measured; a field that was never set is not written."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, protected_namespaces=())

    figures: dict[str, Any]  # metric → value; for answers, part → metric → value
    selected_on: dict[str, Any] = Field(alias="selected on")  # metrics on the held-out part
    epochs: list[dict[str, Any]]  # what training logged for each epoch
    training_seconds: float = Field(alias="training seconds")  # without parts that were not timed
    is_lower_bound: bool = Field(False, alias=LOWER_BOUND)  # a stopped training was resumed
    milliseconds_per_document: float | None = Field(None, alias="milliseconds per document")
    milliseconds_per_question: float | None = Field(None, alias="milliseconds per question")
    parameters: int | None = None  # weights of the network; None for a lexical system
    model_mib: float | None = Field(None, alias="model MiB")  # size of the saved model
    documents_by_iterations: list[int] | None = Field(None, alias="documents by routing iterations")
    config: dict[str, Any]  # without paths of this machine
    data: str  # the data's fingerprint
    gpu_memory_gib: float | None = Field(None, alias="gpu memory GiB")
    process_memory_gib: float | None = Field(None, alias="process memory GiB")
    hardware: str = ""
    version: str = Field("", alias="nlpcapsule")
    commit: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the record as written to a file."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def save(self, path: Path) -> None:
        """Write the record."""
        write_text(path, json.dumps(self.to_json(), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the output of `save`; anything else is a DataError."""
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg'].lower()}"
        except ValueError as error:
            problem = str(error)
        raise DataError(
            f"not the record of a finished run: {problem}", path, hint="remove the file to run it again"
        )


def save_per_document(path: Path, figures: np.ndarray) -> None:
    """Write metrics per document next to a record, compressed."""
    with atomic_path(path.with_suffix(".npz")) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, figures=figures)


def load_per_document(path: Path) -> np.ndarray:
    """Read the output of `save_per_document`: (metrics, documents)."""
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
        return np.atleast_2d(file["figures"])
