"""The questions of a data set."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from nlpcapsule.data.documents import Question


@dataclass(frozen=True)
class AnswerParts:
    """Questions to train on, to select on and to report on.

    Attributes:
        train: Questions to learn weights on.
        select: Questions to choose epochs and settings on.
        report: Name → questions to report metrics on.
        vectors: A file of word vectors, or None.
        encoder: The folder of a pretrained transformer, or None for the one in the settings.
    """

    train: list[Question]
    select: list[Question]
    report: dict[str, list[Question]]
    vectors: Path | None
    encoder: Path | None = None

    def fingerprint(self) -> str:
        """Return a hash of all questions and candidates."""
        digest = hashlib.sha256()
        for part in (self.train, self.select, *self.report.values()):
            for question in part:
                digest.update(question.text.encode())
                for candidate in question.candidates:
                    digest.update(f"{candidate.label}{candidate.text}".encode())
        return digest.hexdigest()[:16]
