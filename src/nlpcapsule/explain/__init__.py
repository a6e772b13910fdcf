"""Explain labels: which words, through which capsules, and which part of the model carried them."""

from nlpcapsule.explain.document import explain
from nlpcapsule.explain.explanation import (
    CapsuleShare,
    DocumentExplanation,
    ExplainedWord,
    LabelExplanation,
    SimilarDocument,
)

__all__ = [
    "CapsuleShare",
    "DocumentExplanation",
    "ExplainedWord",
    "LabelExplanation",
    "SimilarDocument",
    "explain",
]
