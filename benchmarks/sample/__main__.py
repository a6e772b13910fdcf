"""Write the sample's letters and questions as JSON Lines files; the same seed yields the same bytes.

A letter of the part "test-seen" combines clauses that training saw in other letters; one of "test-unseen"
says the same things in words that training never saw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.sample.documents import write_letters
from benchmarks.sample.questions import ask_questions
from nlpcapsule.sample import FOLDER

SEED = 2019


def generate_sample(folder: Path, seed: int = SEED) -> None:
    """Write every part, from `documents-train.jsonl` to `questions-test.jsonl`, into an existing folder."""
    for part, letters in write_letters(seed).items():
        rows: Iterable[dict[str, Any]] = (
            {"id": f"{part}-{number:04}", "text": letter.text, "labels": letter.labels}
            for number, letter in enumerate(letters, start=1)
        )
        _write_rows(folder / f"documents-{part}.jsonl", rows)
    for part, questions in ask_questions(seed).items():
        rows = (
            {
                "id": f"{part}-{number:04}",
                "question": asked.text,
                "candidates": [{"text": text, "label": label} for text, label in asked.candidates],
            }
            for number, asked in enumerate(questions, start=1)
        )
        _write_rows(folder / f"questions-{part}.jsonl", rows)


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(lines.encode("utf-8"))  # bytes, so that no platform changes the line ends


if __name__ == "__main__":
    generate_sample(FOLDER)
