"""Facts about a trained model that its weights do not contain."""

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from nlpcapsule.errors import ModelFolderError

Count = Annotated[int, Field(ge=0, lt=2**53)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class ModelFacts:
    """Facts about a training run; None where one does not apply."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")

    training_documents: Count | None = None  # documents that a label model was trained on
    training_questions: Count | None = None  # questions that an answer model was trained on
    data: str | None = None  # the fingerprint of the training and the held-out data
    embedding_size: Count | None = None  # size of the network's word vectors
    epochs_run: Count | None = None  # epochs that were trained
    threshold: Share | None = None  # the probability from which a label is predicted
    lexical: str | None = None  # the name of the lexical system joined with the network
    candidate_recall: Share | None = None  # share of held-out documents' labels among their candidates
    dev: dict[str, float] | None = None  # metrics on held-out data
    version: Count | None = None  # counted from 1; None for a model that was never changed
    changes: tuple[str, ...] | None = None  # what was done to the model after its training, in order

    def to_json(self) -> dict[str, Any]:
        """Return the facts that apply, for the model folder."""
        values = _FACTS.dump_python(self, exclude_none=True)
        if self.dev is not None:  # JSON has no NaN: leave out metrics that could not be computed
            values["dev"] = {name: figure for name, figure in self.dev.items() if math.isfinite(figure)}
        return values

    @staticmethod
    def from_json(record: Any) -> "ModelFacts":
        """Parse the output of `to_json`; raise `ModelFolderError` for an unknown or impossible fact."""
        try:
            return _FACTS.validate_json(json.dumps(record))  # strict on Python values would refuse lists
        except ValidationError as error:
            first = error.errors()[0]
            fact = f"{'.'.join(map(str, first['loc'][:1]))}={str(first['input'])[:80]}"
            raise ModelFolderError(f"facts.json: {fact} is impossible: {first['msg'].lower()}") from None


_FACTS = TypeAdapter(ModelFacts)
