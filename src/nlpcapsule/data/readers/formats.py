"""Detect the format of a file, folder or stream by its name, contents or first line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers import eurlex57k, extreme, rcv1, reuters21578, wikiqa
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import ConfigError, DataError, did_you_mean
from nlpcapsule.registry import Registry

DOCUMENT_FORMATS = (
    "jsonl",
    "csv",
    "tsv",
    "labels-tab-text",
    "txt",
    "eurlex57k",
    "reuters21578",
    "rcv1",
    "extreme-text",
    "svmlight",
)
# path, options, report → documents; `@DOCUMENT_READERS.register("name")` adds a format.
DOCUMENT_READERS: Registry[Callable[[Path, ReadOptions, ReadReport], Iterator[Document]]] = Registry("format")
QUESTION_FORMATS = ("jsonl", "tsv", "trecqa", "wikiqa")
FOLDER_NAMES_SHOWN = 5


def check_format(name: str, known: tuple[str, ...]) -> None:
    """Raise `ConfigError` for an unknown format."""
    if name != "auto" and name not in known:
        raise ConfigError(f"unknown format {name!r}; {did_you_mean(name, ['auto', *known])}")


def document_folder_format(folder: Path) -> str:
    """Return the published layout of a folder.

    Raises:
        DataError: If no layout is recognised.
    """
    # EURLEX57K comes last: JSON files alone are the weakest evidence.
    for name, layout in [
        ("reuters21578", reuters21578.is_layout),
        ("rcv1", rcv1.is_layout),
        ("extreme-text", extreme.is_layout),
        ("eurlex57k", eurlex57k.is_layout),
    ]:
        if layout(folder):
            return name
    raise unknown_folder(folder, "eurlex57k, reuters21578, rcv1, extreme-text")


def question_folder_format(folder: Path) -> str:
    """Return the published layout of a folder of questions.

    Raises:
        DataError: If no layout is recognised.
    """
    if wikiqa.is_layout(folder):
        return "wikiqa"
    raise unknown_folder(folder, "wikiqa")


def unknown_folder(folder: Path, layouts: str) -> DataError:
    """Return the error for a folder in no known layout."""
    names = sorted(entry.name for entry in folder.iterdir())
    more = ", ..." if len(names) > FOLDER_NAMES_SHOWN else ""
    holds = ", ".join(names[:FOLDER_NAMES_SHOWN]) + more if names else "nothing"
    return DataError(
        f"the folder is in no layout known here ({layouts}); it holds: {holds}",
        folder,
        hint="name a file instead, or the folder that holds the data itself",
    )


def document_file_format(name: str, first_line: str, options: ReadOptions) -> str:
    """Return the format of a file (or of standard input, whose name has no suffix).

    Raises:
        DataError: If neither name nor first line identifies it.
    """
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix == ".sgm":
        return "reuters21578"
    if rcv1.is_token_file(Path(name)):
        return "rcv1"
    if suffix in (".csv", ".tsv"):
        return suffix[1:]
    if suffix in (".jsonl", ".json") or first_line.lstrip().startswith(("{", "[")):
        keys = _keys(first_line)
        return "extreme-text" if extreme.is_row(keys) and options.text_key not in keys else "jsonl"
    if extreme.is_text_file(Path(name)):
        return "extreme-text"
    if extreme.is_svmlight_header(first_line):
        return "svmlight"
    if suffix != ".txt" and _is_header(first_line, "\t", options):
        return "tsv"
    if "\t" in first_line:
        return "labels-tab-text"
    if suffix != ".txt" and _is_header(first_line, ",", options):
        return "csv"
    if suffix == ".txt" or not options.need_labels:
        return "txt"
    raise _cannot_tell(name, "documents", DOCUMENT_FORMATS)


def question_file_format(name: str, first_line: str) -> str:
    """Return the format of a file of questions (or of standard input, whose name has no suffix).

    Raises:
        DataError: If neither name nor first line identifies it.
    """
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix in (".jsonl", ".json") or first_line.lstrip().startswith(("{", "[")):
        return "jsonl"
    if suffix == ".xml" or first_line.lstrip().startswith("<"):
        return "trecqa"
    if wikiqa.is_header(first_line):
        return "wikiqa"
    if suffix == ".tsv" or "\t" in first_line:
        return "tsv"
    raise _cannot_tell(name, "questions with candidate answers", QUESTION_FORMATS)


def _is_header(line: str, delimiter: str, options: ReadOptions) -> bool:
    return delimiter in line and options.text_key in [cell.strip(' "') for cell in line.split(delimiter)]


def _keys(line: str) -> set[str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return set()
    return set(row) if isinstance(row, dict) else set()


def _cannot_tell(name: str, expected: str, formats: tuple[str, ...]) -> DataError:
    return DataError(
        f"expected {expected}, and the format cannot be told from the file's name or first line",
        name,
        hint=f"name it with --format: {', '.join(formats)}",
    )
