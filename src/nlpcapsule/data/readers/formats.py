"""Detect the format of a file, folder or stream by its name, contents or first line."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.readers import extreme
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, suffix_of
from nlpcapsule.errors import BadRowError, ConfigError, DataError, did_you_mean
from nlpcapsule.registry import Registry

FILE_FORMATS = ("jsonl", "csv", "tsv", "labels-tab-text", "txt")
QUESTION_FORMATS = ("jsonl", "tsv")
# path, options, report → documents, or the errors of bad rows; `@DOCUMENT_READERS.register("name")` adds one.
DocumentReader = Callable[[Path, ReadOptions, ReadReport], Iterator[Document | BadRowError]]
DOCUMENT_READERS: Registry[DocumentReader] = Registry("format")
DOCUMENT_READERS.register("extreme-text")(extreme.read_extreme)
DOCUMENT_READERS.register("svmlight")(extreme.read_svmlight)
DOCUMENT_FORMATS = (*FILE_FORMATS, *DOCUMENT_READERS)  # without those of plugins
QuestionReader = Callable[[Path, ReadOptions, ReadReport], Iterator[Question | BadRowError]]
QUESTION_READERS: Registry[QuestionReader] = Registry("format")  # those of plugins
FOLDER_NAMES_SHOWN = 5


def check_format(name: str, known: tuple[str, ...]) -> None:
    """Raise `ConfigError` for an unknown format."""
    if name != "auto" and name not in known:
        raise ConfigError(f"unknown format {name!r}; {did_you_mean(name, {'auto', *known})}")


def document_folder_format(folder: Path) -> str:
    """Return the format of a folder that is read as a whole, or raise `DataError` if it is in none."""
    if extreme.is_layout(folder):
        return "extreme-text"
    names = sorted(entry.name for entry in folder.iterdir())
    more = ", ..." if len(names) > FOLDER_NAMES_SHOWN else ""
    holds = ", ".join(names[:FOLDER_NAMES_SHOWN]) + more if names else "nothing"
    problem = f"the folder is in no layout known here (extreme-text); it holds: {holds}"
    raise DataError(problem, folder, hint="name a file instead, or the folder that holds the data itself")


def document_file_format(name: str, first_line: str, options: ReadOptions) -> str:
    """Return the format of a file or stream by its name and first line, or raise `DataError`."""
    suffix = suffix_of(name)
    if suffix in (".csv", ".tsv"):
        return suffix[1:]
    if suffix in (".jsonl", ".json") or first_line.lstrip().startswith(("{", "[")):
        keys = json_keys(first_line)
        is_extreme = "target_ind" in keys and keys & {"title", "content"} and options.text_key not in keys
        return "extreme-text" if is_extreme else "jsonl"
    if name.removesuffix(".gz").endswith(extreme.TEXT_SUFFIXES):
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
    """Return the format of a file or stream of questions, or raise `DataError`."""
    suffix = suffix_of(name)
    if suffix in (".jsonl", ".json") or first_line.lstrip().startswith(("{", "[")):
        return "jsonl"
    if suffix == ".tsv" or "\t" in first_line:
        return "tsv"
    raise _cannot_tell(name, "questions with candidate answers", QUESTION_FORMATS)


def _is_header(line: str, delimiter: str, options: ReadOptions) -> bool:
    return delimiter in line and options.text_key in [cell.strip(' "') for cell in line.split(delimiter)]


def json_keys(line: str) -> set[str]:
    """Return the keys of a JSON object; none for anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return set()
    return set(row) if isinstance(row, dict) else set()


def _cannot_tell(name: str, expected: str, formats: tuple[str, ...]) -> DataError:
    problem = f"expected {expected}, and the format cannot be told from the file's name or first line"
    return DataError(problem, name, hint=f"name it with --format: {', '.join(formats)}")
