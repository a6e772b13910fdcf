"""What is known about a trained model beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from nlpcapsule.errors import ModelFolderError, did_you_mean


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a training; None where one does not apply.

    Attributes:
        training_documents: Documents that a label model was trained on.
        training_questions: Questions that an answer model was trained on.
        data: The fingerprint of the training and the held-out data.
        embedding_size: Numbers per word that the network's weights have.
        epochs_run: Epochs that were trained.
        threshold: The probability from which on a label is given.
        lexical: The name of the lexical system beside a network.
        dev: Metrics on held-out data.
    """

    training_documents: int | None = None
    training_questions: int | None = None
    data: str | None = None
    embedding_size: int | None = None
    epochs_run: int | None = None
    threshold: float | None = None
    lexical: str | None = None
    dev: dict[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """For the model folder, without the facts that do not apply."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned.

        Raises:
            ModelFolderError: If it holds a fact that is not known.
        """
        known = [field.name for field in fields(cls)]
        for name in record:
            if name not in known:
                raise ModelFolderError(
                    f"facts.json: unknown key {name!r}: {did_you_mean(name, known)}; "
                    "remove it, or upgrade nlpcapsule"
                )
        return cls(**record)
