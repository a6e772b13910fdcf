"""Check what is given to an estimator, and turn it into documents or questions."""

from collections.abc import Iterable, Sequence
from typing import Any

from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.data.readers.document_rows import string_value
from nlpcapsule.data.readers.reading import Place
from nlpcapsule.errors import DataError
from nlpcapsule.hugging_face import dataset_columns, dataset_values, is_dataset


def checked_texts(texts: Sequence[str], name: str = "texts") -> list[str]:
    """Return texts as a list."""
    if isinstance(texts, str):
        raise DataError(f"{name} must be a list of texts. Got a single text instead: put it in a list")
    if not isinstance(texts, Iterable):
        raise DataError(f"{name} must be a list of texts. Got {type(texts).__name__} instead")
    rows = list(texts)
    for index, text in enumerate(rows):
        if not isinstance(text, str):
            raise DataError(f"{name}[{index}] must be a str. Got {type(text).__name__} instead")
    return rows


def _lists(rows: Sequence[Any] | None, name: str) -> list[Any]:
    """Return the rows in order, since indexing a pandas Series by number uses its index."""
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DataError(f"{name} must be a list of lists. Got {type(rows).__name__} instead")
    return list(rows)


def checked_documents(texts: Sequence[str], labels: Sequence[Sequence[str]] | None) -> list[Document]:
    """Return texts, or a dataset, with their labels."""
    if labels is None and is_dataset(texts):
        texts, labels = dataset_columns(texts)
    rows, label_rows = checked_texts(texts), _lists(labels, "labels")
    if len(rows) != len(label_rows):
        raise DataError(f"texts and labels must be of one length. Got {len(rows)} and {len(label_rows)}")
    return [
        Document(text, checked_labels(row, i))
        for i, (text, row) in enumerate(zip(rows, label_rows, strict=True))
    ]


def checked_labels(row: Any, index: int) -> tuple[str, ...]:
    """Return the labels of one text without repeats, as file readers do."""
    names = None if isinstance(row, str) or not isinstance(row, Iterable) else list(row)
    if names is None or not all(isinstance(name, str) for name in names):
        raise DataError(
            f"labels[{index}] must be a list of label names. Got {row!r} instead",
            hint="give [] where there are none",
        )
    if not all(name.strip() for name in names):
        raise DataError(f"labels[{index}] holds a blank label: {row!r}")
    return tuple(dict.fromkeys(string_value(name, "labels", Place("labels", index)) for name in names))


def checked_questions(
    questions: Sequence[str], candidates: Sequence[Sequence[str]], labels: Sequence[Sequence[int]] | None
) -> list[Question]:
    """Return questions with their candidates, and which are right if it is given."""
    texts, answer_rows = checked_texts(questions, "questions"), _lists(candidates, "candidates")
    mark_rows = [None] * len(texts) if labels is None else _lists(labels, "labels")
    if not len(texts) == len(answer_rows) == len(mark_rows):
        lengths = f"{len(texts)}, {len(answer_rows)} and {len(mark_rows)}"
        raise DataError(f"questions, candidates and labels must be of one length. Got {lengths}")
    rows: list[Question] = []
    for index, (text, answer_row, mark_row) in enumerate(zip(texts, answer_rows, mark_rows, strict=True)):
        answers = checked_texts(answer_row, f"candidates[{index}]")
        marks = [None] * len(answers) if labels is None else _marks(mark_row, index, len(answers))
        rows.append(Question(text, tuple(map(Candidate, answers, marks))))
    return rows


def split_pairs(
    questions: Sequence[Any],
    candidates: Sequence[Sequence[Any]] | None,
    labels: Sequence[Sequence[int]] | None,
) -> tuple[Sequence[Any], Sequence[Sequence[Any]], Sequence[Sequence[int]]]:
    """Return questions, candidates and labels, where a dataset, pairs and labels, or all three were given."""
    if candidates is None and is_dataset(questions):
        asked, answers, marks = dataset_values(questions, "question", "candidates", "labels")
        return asked, answers, marks
    if candidates is None:
        raise DataError("candidates must be a list of lists. Got NoneType instead")
    if labels is not None:
        return questions, candidates, labels
    pairs = _lists(questions, "questions")
    for index, pair in enumerate(pairs):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DataError(
                f"questions[{index}] must be a pair (question, candidates). Got {pair!r:.80} instead"
            )
    return [question for question, _ in pairs], [answers for _, answers in pairs], candidates


def _marks(row: Any, index: int, count: int) -> list[Any]:
    """Return which of a question's candidates are right."""
    if not isinstance(row, Iterable):
        expected = "must be a list of 1 (right) and 0 (wrong), one per candidate"
        raise DataError(f"labels[{index}] {expected}. Got {row!r} instead")
    marks = list(row)
    if len(marks) != count:
        raise DataError(f"labels[{index}] must have one label per candidate ({count})")
    if not all(mark in (0, 1) for mark in marks):
        raise DataError(f"labels[{index}] must be 1 (right) or 0 (wrong). Got {marks!r} instead")
    return marks
