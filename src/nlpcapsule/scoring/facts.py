"""Facts about a trained model that its weights do not contain."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from nlpcapsule.errors import ModelFolderError, did_you_mean


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a training run; None where one does not apply."""

    training_documents: int | None = None  # documents that a label model was trained on
    training_questions: int | None = None  # questions that an answer model was trained on
    data: str | None = None  # the fingerprint of the training and the held-out data
    embedding_size: int | None = None  # size of the network's word vectors
    epochs_run: int | None = None  # epochs that were trained
    threshold: float | None = None  # the probability from which a label is predicted
    lexical: str | None = None  # the name of the lexical system joined with the network
    candidate_recall: float | None = None  # share of held-out documents' labels among their candidates
    dev: dict[str, float] | None = None  # metrics on held-out data
    version: int | None = None  # counted from 1; None for a model that was never changed
    changes: tuple[str, ...] | None = None  # what was done to the model after its training, in order

    def to_json(self) -> dict[str, Any]:
        """Return the facts that apply, for the model folder."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.dev is not None:  # JSON has no NaN: leave out metrics that could not be computed
            values["dev"] = {name: figure for name, figure in self.dev.items() if _is_finite(figure)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`; raise `ModelFolderError` for an unknown or impossible fact."""
        if not isinstance(record, Mapping):
            raise ModelFolderError("facts.json: expected an object")
        known = [field.name for field in fields(cls)]
        for name in record:
            if name not in known:
                problem = f"facts.json: unknown key {name!r}: {did_you_mean(name, known)}"
                raise ModelFolderError(f"{problem}; remove it, or upgrade nlpcapsule")
            value = record[name]
            if value is not None and not _is_possible(name, value):
                raise ModelFolderError(f"facts.json: {name}={str(value)[:80]} is impossible")
        changes = record.get("changes")
        return cls(**{**record, "changes": None if changes is None else tuple(changes)})


def _is_possible(name: str, value: Any) -> bool:
    match name:
        case "data" | "lexical":
            return isinstance(value, str)
        case "changes":
            return isinstance(value, list) and all(isinstance(text, str) for text in value)
        case "threshold" | "candidate_recall":
            return _is_finite(value) and 0 <= value <= 1
        case "dev":
            return isinstance(value, dict) and all(map(_is_finite, value.values()))
        case _:
            return _is_count(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
