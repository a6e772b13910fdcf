"""Find the parts of a user's folder, the kind of their rows, and what is selected and reported on.

DIR/train.jsonl    DIR/dev.jsonl    DIR/test.jsonl      or .csv, .tsv, …, each plain or gzipped
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.formats import json_keys
from nlpcapsule.data.readers.lines import TextFile
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.training.preparation import hold_out

HELD_OUT = 0.1  # fraction of train to select on, if there is no other part
_SPLIT_SEED = 2019  # not the systems' seed: all seeds are compared on the same split
_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".txt")

Parts: TypeAlias = tuple[list[Any], list[Any], list[Any]]  # to train on, to select on, to report on


@dataclass(frozen=True)
class UserFolder:
    """The files of a comparison."""

    folder: Path
    kind: str  # "labels" or "answers"
    train: Path
    select: Path | None  # None holds out a part of `train`
    report: Path
    reading: ReadOptions

    @property
    def name(self) -> str:
        """The folder's name and a fingerprint of everything that affects training and reporting."""
        digest = hashlib.sha256(json.dumps([self.kind, asdict(self.reading)], sort_keys=True).encode())
        for path in (self.train, self.select, self.report):
            digest.update(b"none" if path is None else hashlib.sha256(path.read_bytes()).digest())
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

    def parts(self, reports: dict[Path, ReadReport] | None = None) -> Parts:
        """Return the documents, or questions, to train on, to select on and to report on.

        The report of each file is added to `reports`.
        """
        read: Callable[..., Iterable[Any]] = read_documents if self.kind == "labels" else read_questions
        reports = {} if reports is None else reports

        def rows(path: Path) -> list[Any]:
            return list(read(path, self.reading, reports.setdefault(path, ReadReport())))

        train = rows(self.train)
        if self.select is not None:
            return train, rows(self.select), rows(self.report)
        try:
            train, select = hold_out(train, HELD_OUT, _SPLIT_SEED)
        except DataError as error:
            raise DataError(error.problem, self.train, hint="give a dev file to select on") from None
        return train, select, rows(self.report)

    def check(self) -> tuple[dict[str, int], dict[Path, ReadReport]]:
        """Read all files, and return the sizes of the parts and the report of each file.

        There must be something to learn, to select on and to report on.
        """
        reports: dict[Path, ReadReport] = {}
        parts = self.parts(reports)
        sizes = self._label_sizes(*parts) if self.kind == "labels" else self._question_sizes(parts)
        bad_rows = sum(report.bad_rows for report in reports.values())
        return sizes | ({"bad rows left out": bad_rows} if bad_rows else {}), reports

    def _label_sizes(
        self, train: list[Document], select: list[Document], report: list[Document]
    ) -> dict[str, int]:
        counts = Counter(label for row in train for label in set(row.labels))
        if not counts:
            raise DataError("no document has a label, so there is nothing to learn", self.train)
        parts = {"select on": (self.select or self.train, select), "report on": (self.report, report)}
        for purpose, (path, rows) in parts.items():
            if not any(label in counts for row in rows for label in row.labels):
                problem = f"no document to {purpose} has a label that a training document has"
                raise DataError(
                    problem, path, hint="check the labels' key, and that the files belong together"
                )
        reported = {label for row in report for label in row.labels}
        return {
            "training documents": len(train),
            "documents to select on": len(select),
            "documents to report on": len(report),
            "labels": len(counts),
            "labels with 1-10 training documents": sum(count <= 10 for count in counts.values()),
            "labels to report on that training never saw": len(reported - counts.keys()),
        }

    def _question_sizes(self, parts: Parts) -> dict[str, int]:
        for part, path in zip(parts, (self.train, self.select or self.train, self.report), strict=True):
            if not any(candidate.label == 1 for question in part for candidate in question.candidates):
                raise DataError("no candidate is marked right (label 1)", path)
        names = ("training questions", "questions to select on", "questions to report on")
        return dict(zip(names, map(len, parts), strict=True))


def open_folder(folder: Path, reading: ReadOptions, kind: str | None = None) -> UserFolder:
    """Find the parts of a folder; without a kind, "labels" or "answers", detect it by the rows."""
    if reading.split is not None:
        raise ConfigError("--split: the parts are files here, train, dev and test; leave it out")
    if not folder.is_dir():
        raise DataError("there is no such folder", folder, hint="it should hold train.jsonl and test.jsonl")
    train, dev, test = (_part(folder, name) for name in ("train", "dev", "test"))
    report = test or dev
    if train is None or report is None:
        missing = "no training file" if train is None else "nothing to report on: no test and no dev file"
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"
        hint = f"expected train.jsonl and test.jsonl; it holds {held}"
        raise DataError(f"there is {missing}", folder, hint=hint)
    return UserFolder(folder, kind or _kind_of_rows(train), train, dev if test else None, report, reading)


def _part(folder: Path, name: str) -> Path | None:
    """Return the file of a part, in any format."""
    endings = [suffix + gzipped for suffix in _SUFFIXES for gzipped in ("", ".gz")]
    found = [folder / (name + ending) for ending in endings if (folder / (name + ending)).is_file()]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"several files could be its {name} part ({names})", folder, hint="leave one of them")
    return found[0] if found else None


def _kind_of_rows(path: Path) -> str:
    """Detect the kind: rows of questions have a question; all others are documents."""
    with TextFile(path) as file:
        first = file.peek().strip()
    if first.startswith("{"):
        keys = json_keys(first)  # none if it is not JSON: the reader raises a better error
        return "answers" if {"question", "candidates"} & keys and "labels" not in keys else "labels"
    cells = {cell.strip(' "').lower() for cell in first.replace(",", "\t").split("\t")}
    return "answers" if "question" in cells else "labels"
