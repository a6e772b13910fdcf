"""Load the embedded sample in memory or write it as JSON Lines files.

A letter of the part "test-seen" combines clauses that training saw in other letters; one of "test-unseen"
says the same things in words that training never saw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.errors import ConfigError, did_you_mean
from nlpcapsule.sample.documents import PART_SIZES as DOCUMENT_PART_SIZES
from nlpcapsule.sample.documents import write_letters
from nlpcapsule.sample.questions import PART_SIZES as QUESTION_PART_SIZES
from nlpcapsule.sample.questions import ask_questions

DOCUMENT_PARTS = tuple(DOCUMENT_PART_SIZES)
QUESTION_PARTS = tuple(QUESTION_PART_SIZES)
DEFAULT_SEED = 2019


def load_documents(part: str, seed: int = DEFAULT_SEED) -> list[Document]:
    """Return letters to a town's service desk, with their labels.

    Args:
        part: One of `DOCUMENT_PARTS`.
        seed: The same seed yields the same letters on every machine.

    Raises:
        ConfigError: If there is no such part.

    Example:
        >>> load_documents("dev")[0].id
        'dev-0001'
    """
    _check_part(part, DOCUMENT_PARTS, "documents")
    return [
        Document(letter.text, letter.labels, f"{part}-{number:04}")
        for number, letter in enumerate(write_letters(seed)[part], start=1)
    ]


def load_questions(part: str, seed: int = DEFAULT_SEED) -> list[Question]:
    """Return questions about a made-up town, each with right and wrong candidate answers.

    Args:
        part: One of `QUESTION_PARTS`.
        seed: The same seed yields the same questions on every machine.

    Raises:
        ConfigError: If there is no such part.

    Example:
        >>> len(load_questions("dev"))
        30
    """
    _check_part(part, QUESTION_PARTS, "questions")
    return [
        Question(
            asked.text, tuple(Candidate(*candidate) for candidate in asked.candidates), f"{part}-{number:04}"
        )
        for number, asked in enumerate(ask_questions(seed)[part], start=1)
    ]


def write_sample(folder: Path, seed: int = DEFAULT_SEED) -> dict[str, Path]:
    """Write every part as a JSON Lines file, from `documents-train.jsonl` to `questions-test.jsonl`.

    Args:
        folder: Where to write; created if missing.
        seed: The same seed yields the same bytes on every machine.

    Returns:
        The path of each file, by its name without the suffix.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for part in DOCUMENT_PARTS:
        rows = ({"id": d.id, "text": d.text, "labels": list(d.labels)} for d in load_documents(part, seed))
        paths[f"documents-{part}"] = _write_rows(folder / f"documents-{part}.jsonl", rows)
    for part in QUESTION_PARTS:
        rows = (_question_row(question) for question in load_questions(part, seed))
        paths[f"questions-{part}"] = _write_rows(folder / f"questions-{part}.jsonl", rows)
    return paths


def _question_row(question: Question) -> dict[str, Any]:
    candidates = [{"text": candidate.text, "label": candidate.label} for candidate in question.candidates]
    return {"id": question.id, "question": question.text, "candidates": candidates}


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(lines.encode("utf-8"))  # bytes, so that no platform changes the line ends
    return path


def _check_part(part: str, known: tuple[str, ...], what: str) -> None:
    if part not in known:
        raise ConfigError(f"the sample has no {what} called {part!r}; {did_you_mean(part, known)}")
