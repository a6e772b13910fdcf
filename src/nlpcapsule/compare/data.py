"""Find the parts of a user's folder, the kind of their rows, and what is selected and reported on.

DIR/train.jsonl    DIR/dev.jsonl    DIR/test.jsonl      or .csv, .tsv, …, each plain or gzipped
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.lines import TextFile
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.training.preparation import hold_out

KINDS = ("labels", "answers")
HELD_OUT = 0.1  # fraction of train to select on, if there is no other part
_SPLIT_SEED = 2019  # not the systems' seed: all seeds are compared on the same split
_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".txt", ".xml")

Row = TypeVar("Row", Document, Question)


@dataclass(frozen=True)
class UserFolder:
    """The files of a comparison.

    Attributes:
        folder: The user's folder.
        kind: "labels" or "answers".
        train: The training file.
        select: The file to select on; None holds out a part of `train`.
        report: The file to report metrics on.
        reading: How the files are read.
        label_names: A file of label names, or None.
    """

    folder: Path
    kind: str
    train: Path
    select: Path | None
    report: Path
    reading: ReadOptions
    label_names: Path | None = None

    @property
    def name(self) -> str:
        """The folder's name and a fingerprint of everything that affects training and reporting."""
        digest = hashlib.sha256(json.dumps([self.kind, asdict(self.reading)], sort_keys=True).encode())
        for path in (self.train, self.select, self.report):
            digest.update(b"none" if path is None else hashlib.sha256(path.read_bytes()).digest())
        if self.label_names is not None:
            digest.update(hashlib.sha256(self.label_names.read_bytes()).digest())
        return f"{self.folder.resolve().name}-{digest.hexdigest()[:8]}"

    @property
    def split(self) -> str:
        """A description of what is trained, selected and reported on."""
        if self.select is not None:
            names = (self.train.name, self.select.name, self.report.name)
            return "trained on {}, selected on {}, reported on {}".format(*names)
        why = "there is no test file" if self.report.name.startswith("dev.") else "there is no dev file"
        return (
            f"trained on {1 - HELD_OUT:.0%} of {self.train.name}, selected on the other {HELD_OUT:.0%} "
            f"({why}), reported on {self.report.name}"
        )

    @cached_property
    def counted(self) -> dict[Path, ReadReport]:
        """Good and bad rows of each file, if bad rows are skipped.

        The files are read again for this, since prepared data of an earlier run does not contain it.
        """
        if not self.reading.skip_bad_rows:
            return {}
        read = read_documents if self.kind == "labels" else read_questions
        found = {path: ReadReport() for path in (self.train, self.select, self.report) if path is not None}
        for path, report in found.items():
            deque(read(path, self.reading, report), maxlen=0)
        return found

    def documents(self) -> tuple[list[Document], list[Document], list[Document]]:
        """Return the documents to train on, to select on and to report on."""
        return self._parts(read_documents)

    def questions(self) -> tuple[list[Question], list[Question], list[Question]]:
        """Return the questions to train on, to select on and to report on."""
        return self._parts(read_questions)

    def _parts(
        self, read: Callable[[Path, ReadOptions], Iterable[Row]]
    ) -> tuple[list[Row], list[Row], list[Row]]:
        train, report = list(read(self.train, self.reading)), list(read(self.report, self.reading))
        if self.select is not None:
            return train, list(read(self.select, self.reading)), report
        try:
            train, select = hold_out(train, HELD_OUT, _SPLIT_SEED)
        except DataError as error:
            raise DataError(error.problem, self.train, hint="give a dev file to select on") from None
        return train, select, report


def open_folder(folder: Path, reading: ReadOptions, kind: str | None = None) -> UserFolder:
    """Find the parts of a folder.

    Args:
        folder: The folder.
        reading: How to read the files.
        kind: "labels" or "answers"; None detects it by the rows.
    """
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"unknown task {kind!r}: expected 'labels' or 'answers'")
    if reading.split is not None:
        raise ConfigError("--split: the parts are files here, train, dev and test; leave it out")
    if not folder.is_dir():
        raise DataError(
            "there is no such folder", folder, hint="name one that holds train.jsonl and test.jsonl"
        )
    train, dev, test = (_part(folder, name) for name in ("train", "dev", "test"))
    if train is None:
        raise DataError(
            "there is no training file", folder, hint=f"expected train.jsonl; it holds {_listing(folder)}"
        )
    report = test or dev
    if report is None:
        raise DataError(
            "there is nothing to report on: neither a test nor a dev file",
            folder,
            hint=f"expected test.jsonl; it holds {_listing(folder)}",
        )
    found = kind or _kind_of_rows(train)
    return UserFolder(folder, found, train, dev if test else None, report, reading)


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a JSON Lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def document_row(document: Document) -> dict[str, Any]:
    """Return a document as a row for the readers."""
    return {"id": document.id, "text": document.text, "labels": list(document.labels)}


def question_row(question: Question) -> dict[str, Any]:
    """Return a question as a row for the readers."""
    return {
        "id": question.id,
        "question": question.text,
        "candidates": [asdict(c) for c in question.candidates],
    }


def _part(folder: Path, name: str) -> Path | None:
    """Return the file of a part, in any format."""
    endings = [suffix + gzipped for suffix in _SUFFIXES for gzipped in ("", ".gz")]
    found = [folder / (name + ending) for ending in endings if (folder / (name + ending)).is_file()]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"several files could be its {name} part ({names})", folder, hint="leave one of them")
    return found[0] if found else None


def _listing(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "") if names else "nothing"


def _kind_of_rows(path: Path) -> str:
    """Detect the kind: rows of questions have a question; all others are documents."""
    with TextFile(path) as file:
        first = file.peek().strip()
    if first.startswith("{"):
        try:
            keys = set(json.loads(first))
        except (ValueError, RecursionError):
            return "labels"  # the reader raises a better error
        return "answers" if {"question", "candidates"} & keys and "labels" not in keys else "labels"
    cells = {cell.strip(' "').lower() for cell in first.replace(",", "\t").split("\t")}
    return "answers" if "question" in cells or first.startswith("<") else "labels"
