"""The result of explaining a document, or the answers to a question."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SOURCES = ("network", "lexical", "neighbours", "name", "prior")


@dataclass(frozen=True)
class CapsuleShare:
    """A capsule that a label's capsule was routed from.

    Attributes:
        capsule: Its index.
        share: Its coupling with the label (between 0 and 1), or its share of a word's way to the label.
        words: The words that it attends to most.
    """

    capsule: int
    share: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainedWord:
    """A word of the text that speaks for a label, or of a question or answer that speaks for the answer.

    Attributes:
        word: The word, as it is first written.
        spans: First character and the one after the last of each mention: `text[start:end]`.
        importance: How much the log-odds of the label, or answer, fall if all mentions are deleted.
        probability_drop: How much the probability falls.
        by_source: The importance by part of the model, as in `log_odds_by_source`.
        capsules: The capsules through which the word reached the label, largest share first.
    """

    word: str
    spans: tuple[tuple[int, int], ...]
    importance: float
    probability_drop: float
    by_source: dict[str, float]
    capsules: tuple[CapsuleShare, ...] = ()


@dataclass(frozen=True)
class SimilarDocument:
    """A training document that is similar to the text.

    Attributes:
        id: Its identifier, or its row in the training part ("row 17") where the model does not know one.
        similarity: The cosine.
        weight: Its weight among all similar documents, between 0 and 1.
        labels: Its labels.
    """

    id: str
    similarity: float
    weight: float
    labels: tuple[str, ...]


@dataclass(frozen=True)
class LabelExplanation:
    """Why a document has a label.

    Attributes:
        label: The label.
        name: Its name, if known.
        probability: Its probability.
        log_odds: The same as log-odds.
        log_odds_by_source: Summands of the log-odds, by part of the model; they add up exactly.
        shares: The part of each source in what lifts the label above the document's average candidate; they
            add up to 1.
        words: The words that speak for it, most important first.
        capsules: The capsules that it was routed from, largest coupling first; empty where nothing is routed.
    """

    label: str
    name: str | None
    probability: float
    log_odds: float
    log_odds_by_source: dict[str, float]
    shares: dict[str, float]
    words: tuple[ExplainedWord, ...]
    capsules: tuple[CapsuleShare, ...] = ()


@dataclass(frozen=True)
class DocumentExplanation:
    """Explanations of labels of one text.

    Attributes:
        text: The text.
        labels: One explanation per label.
        similar: Similar training documents, nearest first; empty where the model keeps none.
        agreement: Negative agreement score by routing iteration; empty where nothing is routed.
        iterations: Routing iterations that the document took; None where nothing is routed.
        read_until: Characters of the text that the model reads; the rest is beyond its maximum length.
    """

    text: str
    labels: tuple[LabelExplanation, ...]
    similar: tuple[SimilarDocument, ...] = ()
    agreement: tuple[float, ...] = ()
    iterations: int | None = None
    read_until: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values, without the text."""
        values = asdict(self)
        del values["text"]
        return _plain(values)

    def _repr_html_(self) -> str:
        """Return the display of a notebook."""
        from nlpcapsule.explain.html import explanation_html

        return explanation_html(self)


@dataclass(frozen=True)
class AnswerExplanation:
    """Why an answer has its score.

    Attributes:
        answer: The answer.
        position: Its index among the given candidates.
        probability: Its probability of being right.
        log_odds: The same as log-odds.
        log_odds_by_source: Summands of the log-odds: `capsules` (the cosine) and `overlap` (the word match
            features), or `model` for systems without these parts.
        shares: The part of each source in what lifts the answer above the average candidate; they add up to
            1. Empty where nothing lifts it, or there is no other candidate.
        question_words: The words of the question that speak for it, most important first.
        answer_words: The words of the answer that speak for it, most important first.
    """

    answer: str
    position: int
    probability: float
    log_odds: float
    log_odds_by_source: dict[str, float]
    shares: dict[str, float]
    question_words: tuple[ExplainedWord, ...]
    answer_words: tuple[ExplainedWord, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values, without the answer's text."""
        values = asdict(self)
        del values["answer"]
        for word in (*values["question_words"], *values["answer_words"]):
            del word["capsules"]
        return _plain(values)


@dataclass(frozen=True)
class QuestionExplanation:
    """Explanations of answers to one question, best first."""

    question: str
    answers: tuple[AnswerExplanation, ...]

    def _repr_html_(self) -> str:
        """Return the display of a notebook."""
        from nlpcapsule.explain.html import answers_html

        return answers_html(self)


def _plain(value: Any) -> Any:
    """Round numbers and turn tuples into lists, as JSON has them."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value
