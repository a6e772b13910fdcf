"""Explain labels and answers: which words, capsules and parts of the model carried them."""

from nlpcapsule.explain.answers import explain_answers
from nlpcapsule.explain.document import explain
from nlpcapsule.explain.explanation import (
    AnswerExplanation,
    CapsuleShare,
    DocumentExplanation,
    ExplainedWord,
    LabelExplanation,
    QuestionExplanation,
    SimilarDocument,
)

__all__ = [
    "AnswerExplanation",
    "CapsuleShare",
    "DocumentExplanation",
    "ExplainedWord",
    "LabelExplanation",
    "QuestionExplanation",
    "SimilarDocument",
    "explain",
    "explain_answers",
]
