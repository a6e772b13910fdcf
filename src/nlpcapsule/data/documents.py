"""The types that readers yield: documents with labels, questions with candidate answers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its labels."""

    text: str  # the text (a title, where the source has one, is its first line)
    labels: tuple[str, ...] = ()  # the labels' names, in the source's order, without repeats; may be empty
    id: str | None = None  # the source's identifier, or None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate answer; `label` is 1 for a right answer, 0 for a wrong one, None if unknown."""

    text: str
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its candidate answers, in the order of the file."""

    text: str
    candidates: tuple[Candidate, ...]
    id: str | None = None
