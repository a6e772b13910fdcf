"""The record of a system's cost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from nlpcapsule import __version__
from nlpcapsule.atomic_files import write_text
from nlpcapsule.provenance import hardware

SEED = 1

# Field → its key in the JSON file.
_KEYS = {
    "parameters": "parameters",
    "parameters_without_word_vectors": "parameters without word vectors",
    "training": "training",
    "inference": "inference",
    "peak_memory_mib": "peak memory MiB",
    "routing_iterations": "routing iterations",
    "hardware": "hardware",
    "version": "nlpcapsule",
    "commit": "commit",
}


@dataclass(frozen=True)
class Spec:
    """A system and the sizes it is measured with.

    Attributes:
        system: Its name in the table.
        kind: "labels" or "answers".
        model: The model's name in the configuration.
        settings: Settings that differ from the model's defaults.
        vocabulary: V.
        labels: n.
        own_labels: Labels per document.
        batch: Documents, or pairs of question and answer.
        warm_up: Batches before timing starts.
        repeats: Timed batches.
        seconds: No further batch starts after this time.
    """

    system: str
    kind: str
    model: str
    settings: dict[str, Any]
    vocabulary: int = 50_000
    labels: int = 3_956
    own_labels: int = 5
    batch: int = 32
    warm_up: int = 3
    repeats: int = 15
    seconds: float = 120.0


@dataclass(frozen=True, kw_only=True)
class CostRecord:
    """The cost of a system.

    Attributes:
        spec: The system and its sizes.
        training: "milliseconds" of a batch and "batches" timed; or how much memory was missing.
        inference: The same without gradients.
        hardware: The machine.
        version: The version of nlpcapsule.
        commit: The commit of the code.
        parameters: Weights of the network; None if the process was killed.
        parameters_without_word_vectors: The same without the embedding.
        peak_memory_mib: Peak memory of training; None if there was not enough.
        routing_iterations: Mean of the first training batch; None if the network does not route.
    """

    spec: Spec
    training: dict[str, Any]
    inference: dict[str, Any]
    hardware: str
    version: str
    commit: str
    parameters: int | None = None
    parameters_without_word_vectors: int | None = None
    peak_memory_mib: float | None = None
    routing_iterations: float | None = None

    @classmethod
    def of_killed(cls, spec: Spec, commit: str) -> Self:
        """Return the record of a system that the operating system killed for lack of memory."""
        outcome = {"out of memory": "killed by the operating system"}
        return cls(
            spec=spec,
            training=outcome,
            inference=outcome,
            hardware=hardware(),
            version=__version__,
            commit=commit,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as written to a file."""
        return {"spec": asdict(self.spec), **{key: getattr(self, field) for field, key in _KEYS.items()}}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        fields = {field: values[key] for field, key in _KEYS.items()}
        return cls(spec=Spec(**values["spec"]), **fields)

    def save(self, path: Path) -> None:
        """Write the record."""
        write_text(path, json.dumps(self.to_json(), indent=1) + "\n")
