"""Options that several commands share, and what they mean to the readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.text.document_files import read_documents
from nlpcapsule.text.documents import Document, Question
from nlpcapsule.text.question_files import read_questions
from nlpcapsule.text.reading import ReadOptions, ReadReport

Format = Annotated[str, typer.Option("--format", help="File format; told by name and content if left out.")]
TextKey = Annotated[str, typer.Option("--text-key", help="Key or column of the text.")]
LabelsKey = Annotated[str, typer.Option("--labels-key", help="Key or column of the labels.")]
IdKey = Annotated[str, typer.Option("--id-key", help="Key or column of the identifier.")]
TitleKey = Annotated[str, typer.Option("--title-key", help="Key or column of the title.")]
LabelSeparator = Annotated[
    str | None, typer.Option("--label-separator", help="Separates labels inside one cell.  [default: ;]")
]
Split = Annotated[
    str | None, typer.Option("--split", help="Part of a layout that holds several: train, dev, test.")
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Count and report bad rows and go on without them.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


@dataclass
class DocumentFile:
    """Documents of a file, read anew each time they are gone through; standard input is read once and kept."""

    source: str
    options: ReadOptions
    report: ReadReport | None = None

    def __post_init__(self) -> None:
        self._kept: list[Document] | None = None

    def __iter__(self) -> Iterator[Document]:
        if self._kept is not None:
            return iter(self._kept)
        report = ReadReport()
        if self.source == "-":
            self._kept = list(read_documents(self.source, self.options, report))
            self.report = report
            return iter(self._kept)
        return self._read(report)

    def _read(self, report: ReadReport) -> Iterator[Document]:
        yield from read_documents(self.source, self.options, report)
        self.report = report


def questions_in(source: str, options: ReadOptions) -> tuple[list[Question], ReadReport]:
    """All questions of a file."""
    report = ReadReport()
    return list(read_questions(source, options, report)), report


def without_labels(options: ReadOptions) -> ReadOptions:
    """The same options for data that need no labels."""
    return replace(options, need_labels=False)


def refuse_same_stdin(*sources: str | None) -> None:
    """Standard input can be read once."""
    if sum(source == "-" for source in sources) > 1:
        raise NlpCapsuleError("standard input (-) can stand for one file only; name the other one")


def existing_parent(path: Path) -> None:
    """Refuses an output that could not be written, before any work is done."""
    if path.is_dir():
        raise NlpCapsuleError(f"{path} is a folder: expected the name of a file to write")
    parent = path.parent
    if parent.exists() and not parent.is_dir():
        raise NlpCapsuleError(f"{parent} is a file, so {path} cannot be written")
