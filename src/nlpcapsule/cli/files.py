"""Read input rows and check output paths before any work is done."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from nlpcapsule.atomic_files import check_file_name
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.lines import STDIN, is_stream
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.model_folder.manifest import INSPECTION, listed_names


def say(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(text, err=True)


@dataclass
class RowFile:
    """Documents or questions of a file, which is read for each iteration; a stream is read once and kept."""

    source: str
    options: ReadOptions
    read: Callable[[str, ReadOptions, ReadReport], Iterator[Any]] = read_documents
    report: ReadReport = field(default_factory=ReadReport)  # of the latest complete reading
    _kept: list[Any] | None = None
    _say: Callable[[str], None] = say

    def __iter__(self) -> Iterator[Any]:
        if self._kept is None and is_stream(self.source):  # a pipe, as in <(command), can only be read once
            self._kept = list(self._read())
        return self._read() if self._kept is None else iter(self._kept)

    def _read(self) -> Iterator[Any]:
        report = ReadReport(say=self._say)
        self._say = lambda text: None  # the format that was guessed is said once
        yield from self.read(self.source, self.options, report)
        self.report = report


@contextmanager
def errors_about(source: str) -> Iterator[None]:
    """Add the file's name to errors about the data as a whole, raised by steps that do not know the file."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(error.problem, shown(source), error.line, error.hint) from error


def shown(source: str) -> str:
    """Return the name of a source in messages."""
    return "<stdin>" if source == STDIN else source


def tell_bad_rows(source: str, report: ReadReport) -> None:
    """Report on standard error which rows were skipped, if any."""
    if report.bad_rows:
        say(f"{shown(source)}: {report.summary()}")


def refuse_same_stdin(*sources: str | None) -> None:
    """Reject standard input as two inputs, since it can only be read once."""
    if sources.count(STDIN) > 1:
        raise NlpCapsuleError("standard input (-) can stand for one file only; name the other one")


def refuse_missing(*sources: str | Path | None) -> None:
    """Reject names of files or folders that do not exist."""
    for source in sources:
        if source is not None and str(source) != STDIN and not Path(source).exists():
            raise DataError("there is no such file", source, hint="check the path")


def check_output_file(path: Path | None, option: str, source: str, model: Path) -> None:
    """Reject a file, if any, that cannot be written, or that would overwrite an input."""
    if path is None:
        return
    check_file_name(path)
    _check_parents(path)
    if source != STDIN and path.exists() and Path(source).exists() and path.samefile(source):
        raise NlpCapsuleError(f"{option} {path} is what is read: name another file")
    # Links are resolved for the folder, not for the file: a link would itself be replaced.
    if path.parent.resolve().is_relative_to(model.resolve()):
        raise NlpCapsuleError(f"{option} {path} lies in the model folder {model}: name another place")


def check_folder_name(path: Path) -> None:
    """Reject a folder whose name is not UTF-8: safetensors cannot open files in it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise NlpCapsuleError(f"{path}: the folder's name is not UTF-8; rename it") from None


def check_output_folder(path: Path) -> None:
    """Reject a folder that cannot be created or written, or whose files would spoil a model around it."""
    check_folder_name(path)
    inside = Path(os.path.realpath(path))  # follows links, and does not fail on a loop of them
    for model in inside.parents:
        if inside.relative_to(model).parts[0] != INSPECTION and listed_names(model) is not None:
            raise NlpCapsuleError(f"{path} lies in the model folder {model}: name another place")
    if path.exists() and not path.is_dir():
        raise NlpCapsuleError(f"{path} is a file: expected the name of a folder to write into")
    _check_parents(path / "any file")


def _check_parents(path: Path) -> None:
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    if not nearest.is_dir():
        raise NlpCapsuleError(f"{nearest} is a file, so nothing can be written below it")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise NlpCapsuleError(f"the folder {nearest} is not writable; choose another place")
