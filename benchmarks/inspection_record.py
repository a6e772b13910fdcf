"""The record of a network whose routing was inspected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nlpcapsule.atomic_files import write_text

# Field → its key in the JSON file.
_KEYS = {
    "model": "model",
    "settings": "settings",
    "routing": "routing",
    "most_iterations": "most iterations",
    "loss_by_iterations": "loss by iterations",
    "instance_agreement": "agreement of one document",
    "instance_stop": "that document stops after",
    "documents_by_iterations": "documents by iterations",
    "loss_documents": "loss is of",
    "counted_documents": "iterations are of",
    "labels_routed_to": "labels routed to",
    "epochs": "epochs",
    "selected_on": "selected on",
    "config": "config",
    "data": "data",
    "hardware": "hardware",
    "version": "nlpcapsule",
    "commit": "commit",
}


@dataclass(frozen=True, kw_only=True)
class InspectionRecord:
    """The inspection of a trained network's routing.

    Attributes:
        model: The network's name.
        settings: Settings that differ from its defaults.
        routing: The routing algorithm.
        most_iterations: The maximum iterations of a document.
        loss_by_iterations: Number of iterations, as text → loss per document.
        instance_agreement: The agreement score of one document, by iteration.
        instance_stop: The iteration after which that document stops.
        documents_by_iterations: Documents that took 0, 1, 2, … iterations.
        loss_documents: The documents of the loss, in words.
        counted_documents: The documents whose iterations are counted, in words.
        labels_routed_to: Labels that each document is routed to.
        epochs: Epochs of training.
        selected_on: Metric → value on the documents that epochs were selected on.
        config: The whole configuration.
        data: The data set's fingerprint.
        hardware: The machine.
        version: The version of nlpcapsule.
        commit: The commit of the code.
    """

    model: str
    settings: dict[str, Any]
    routing: str
    most_iterations: int | None
    loss_by_iterations: dict[str, float]
    instance_agreement: list[float]
    instance_stop: int | None
    documents_by_iterations: list[int]
    loss_documents: str
    counted_documents: str
    labels_routed_to: int
    epochs: int
    selected_on: dict[str, float]
    config: dict[str, Any]
    data: str
    hardware: str
    version: str
    commit: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the record as written to a file."""
        return {key: getattr(self, field) for field, key in _KEYS.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(**{field: values[key] for field, key in _KEYS.items()})

    def save(self, path: Path) -> None:
        """Write the record."""
        write_text(path, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")
