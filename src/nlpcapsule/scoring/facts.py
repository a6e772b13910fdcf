"""Facts about a trained model that its weights do not contain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from nlpcapsule.errors import ModelFolderError, did_you_mean


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a training run; None where one does not apply.

    Attributes:
        training_documents: Documents that a label model was trained on.
        training_questions: Questions that an answer model was trained on.
        data: The fingerprint of the training and the held-out data.
        embedding_size: Size of the network's word vectors.
        epochs_run: Epochs that were trained.
        threshold: The probability from which a label is predicted.
        lexical: The name of the lexical system joined with the network.
        dev: Metrics on held-out data, before later changes.
        version: The version, counted from 1; None for a model that was never changed.
        changes: What was done to the model after its training, in order.
    """

    training_documents: int | None = None
    training_questions: int | None = None
    data: str | None = None
    embedding_size: int | None = None
    epochs_run: int | None = None
    threshold: float | None = None
    lexical: str | None = None
    dev: dict[str, float] | None = None
    version: int | None = None
    changes: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the facts that apply, for the model folder."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.dev is not None:  # JSON has no NaN: leave out metrics that could not be computed
            values["dev"] = {name: figure for name, figure in self.dev.items() if _is_finite(figure)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`.

        Raises:
            ModelFolderError: If a fact is unknown or has an impossible value.
        """
        if not isinstance(record, Mapping):
            raise ModelFolderError("facts.json: expected an object")
        known = [field.name for field in fields(cls)]
        for name in record:
            if name not in known:
                raise ModelFolderError(
                    f"facts.json: unknown key {name!r}: {did_you_mean(name, known)}; "
                    "remove it, or upgrade nlpcapsule"
                )
        facts = cls(**record)
        if isinstance(facts.changes, list):  # as JSON has it
            facts = replace(facts, changes=tuple(facts.changes))
        for name in ("training_documents", "training_questions", "embedding_size", "epochs_run", "version"):
            _check(name, getattr(facts, name), _is_count)
        for name in ("data", "lexical"):
            _check(name, getattr(facts, name), lambda value: isinstance(value, str))
        _check("threshold", facts.threshold, lambda value: _is_finite(value) and 0 <= value <= 1)
        _check(
            "dev",
            facts.dev,
            lambda value: isinstance(value, dict) and all(_is_finite(number) for number in value.values()),
        )
        _check("changes", facts.changes, _is_texts)
        return facts


def _is_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)


def _check(name: str, value: Any, is_possible: Callable[[Any], bool]) -> None:
    if value is not None and not is_possible(value):
        raise ModelFolderError(f"facts.json: {name}={str(value)[:80]} is impossible")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
