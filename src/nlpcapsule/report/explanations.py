"""Name the words behind a label, if the model can be explained."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.scoring.models import LabelModel

_MODULE = "nlpcapsule.explain"
_WORDS = 8


def explained_words(model: LabelModel, text: str, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the words that carried each label, most important first; empty without explanations."""
    if find_spec(_MODULE) is None or not labels:
        return {}
    try:
        explanation = import_module(_MODULE).explain(model, text, labels=list(labels))
    except NlpCapsuleError:  # a model of a kind that cannot be explained
        return {}
    return {label.label: tuple(word.word for word in label.words[:_WORDS]) for label in explanation.labels}
