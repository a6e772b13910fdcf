"""The record of a finished run, with a type for each of its fields."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlpcapsule.compare.record import LOWER_BOUND, load_record, save_record
from nlpcapsule.errors import DataError


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
        save_record(path, self.to_json())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the output of `save`; anything else is a DataError."""
        try:
            return cls.model_validate(load_record(path))
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
        raise DataError(
            f"not the record of a finished run: {problem}", path, hint="remove it to run it again"
        )
