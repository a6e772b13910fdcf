"""The answer data sets.

trecqa   train-all without 150 seeded questions to select on; reported on both versions of dev
sample   the embedded questions
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.label_data import MINILM
from nlpcapsule.data.documents import Question
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.errors import DataError
from nlpcapsule.sample import load_questions

SELECTED_ON = 150
SPLIT_SEED = 2019
REPORTED = ("dev-clean", "dev-raw")


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


def answer_parts(name: str, data: Path | None) -> AnswerParts:
    """Return a data set.

    Args:
        name: "trecqa" or "sample".
        data: The folder with `trecqa/`, `vectors/` and, for the transformers, `all-MiniLM-L6-v2/`.
    """
    if name == "sample":
        train, select, test = (load_questions(part) for part in ("train", "dev", "test"))
        return AnswerParts(train, select, {"test": test}, None)
    if data is None or not (data / name).is_dir():
        raise DataError(f"expected a folder that holds {name}/: name it with --data", data)
    folder = data / name
    questions = list(read_questions(folder / "train-all.tsv.gz"))
    chosen = set(np.random.default_rng(SPLIT_SEED).permutation(len(questions))[:SELECTED_ON].tolist())
    train = [question for index, question in enumerate(questions) if index not in chosen]
    select = [question for index, question in enumerate(questions) if index in chosen]
    report = {part: list(read_questions(folder / f"{part}.tsv.gz")) for part in REPORTED}
    encoder = data / MINILM
    return AnswerParts(
        train,
        select,
        report,
        data / "vectors" / "glove.6B.100d.trimmed.txt.gz",
        encoder if encoder.is_dir() else None,
    )
