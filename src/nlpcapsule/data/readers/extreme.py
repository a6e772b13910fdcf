"""Raw text from the extreme classification repository: JSON rows, or a text file and a label file.

The names the repository and its users give to the files of a part (`trn` or `train`, `tst` or `test`):

    trn.json[.gz]                            rows with uid, title, content, target_ind
    trn.raw.txt, trn_raw.txt,
    trn_raw_texts.txt                        one text per line; its labels in one of the files below
    trn_X_Y.txt                              header "points labels", lines "label:1.0 label:1.0"
    trn.txt                                  header "points features labels", lines "label,label word:value"
    trn_labels.txt, Y.trn.txt                one line of label names per text
    lbl.json[.gz], lbl.raw.txt, Y.txt        row n is the name of label n
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import (
    make_document,
    optional_name,
    optional_string,
    parse_object,
)
from nlpcapsule.data.readers.label_lines import LabelKind, LabelLines, LabelNames, is_svmlight_header
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, bad_row, chosen_part, good_rows
from nlpcapsule.errors import BadRowError, DataError

PREFIXES = {"train": ("trn", "train"), "test": ("tst", "test")}
TEXT_SUFFIXES = (".raw.txt", "_raw.txt", "_raw_texts.txt")
JSON_SUFFIXES = (".json", ".json.gz")
# Files that name labels come first; the features of an svmlight file are not needed.
LABEL_FILES: dict[str, LabelKind] = {
    "{}_X_Y.txt": "sparse",
    "{}_labels.txt": "words",
    "Y.{}.txt": "words",
    "{}.txt": "svmlight",
}

__all__ = ["is_layout", "is_row", "is_svmlight_header", "is_text_file", "read_extreme", "read_svmlight"]


class JoinedRow(NamedTuple):
    """A line of text and the line of labels that belongs to it."""

    text: Line
    labels: Line | None


def is_layout(folder: Path) -> bool:
    """Return whether a folder holds a part of such a data set."""
    return any(_part_file(folder, part) for part in PREFIXES)


def is_row(keys: set[str]) -> bool:
    """Return whether a JSON row with these keys comes from the repository."""
    return "target_ind" in keys and bool(keys & {"title", "content"})


def is_text_file(path: Path) -> bool:
    """Return whether a file is named like one of the raw text files."""
    return path.name.removesuffix(".gz").endswith(TEXT_SUFFIXES)


def read_extreme(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document]:
    """Read a part of a folder, a file of JSON rows, or a raw text file with its label file."""
    if source.is_file():
        files = [source]
    else:
        found = {part: path for part in PREFIXES if (path := _part_file(source, part))}
        files = [found[part] for part in chosen_part(options, list(found), source)]
    for path in files:
        if path.name.endswith(JSON_SUFFIXES):
            yield from _read_json_rows(path, options, report)
        else:
            yield from _read_joined(path, _label_lines(path, options), options, report)


def read_svmlight(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document]:
    """Read the labels of an svmlight-like file and the texts of its raw text file.

    Raises:
        DataError: If there is no raw text file: the features are counts of unknown words.
    """
    prefix = source.name.removesuffix(".gz").removesuffix(".txt")
    candidates = [prefix + suffix for suffix in TEXT_SUFFIXES]
    for name in candidates:
        if (source.parent / name).exists():
            label_lines = LabelLines(source, "svmlight", LabelNames(source.parent))
            yield from _read_joined(source.parent / name, label_lines, options, report)
            return
    raise DataError(
        "an svmlight file holds numbered features, and the text cannot be had back from them",
        source,
        hint=f"put the raw text beside it, one text per line, as one of: {', '.join(candidates)}",
    )


def _part_file(folder: Path, part: str) -> Path | None:
    for suffix in (*JSON_SUFFIXES, *TEXT_SUFFIXES):
        for prefix in PREFIXES[part]:
            if (folder / (prefix + suffix)).exists():
                return folder / (prefix + suffix)
    return None


def _prefix_of_text(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    # Longest suffix first: "_raw.txt" must not match the end of a longer one.
    for suffix in sorted(TEXT_SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name.removesuffix(".txt")


def _label_lines(text_path: Path, options: ReadOptions) -> LabelLines | None:
    folder, prefix = text_path.parent, _prefix_of_text(text_path)
    candidates = {pattern.format(prefix): kind for pattern, kind in LABEL_FILES.items()}
    for name, kind in candidates.items():
        if (folder / name).exists() and folder / name != text_path:
            return LabelLines(folder / name, kind, LabelNames(folder))
    if not options.need_labels:
        return None
    raise DataError(
        "the file of its labels is missing",
        text_path,
        hint=f"put it beside, as one of: {', '.join(candidates)}",
    )


def _read_json_rows(path: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document]:
    names = LabelNames(path.parent)

    def parse(line: Line) -> Document:
        row = parse_object(line.text, path, line.number)
        if not row.keys() & {"title", "content"}:
            raise bad_row("the row has neither 'title' nor 'content'", path, line.number)
        if "target_ind" not in row and options.need_labels:
            raise bad_row("the key 'target_ind' (the labels' numbers) is missing", path, line.number)
        numbers = row.get("target_ind") or []
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise bad_row("'target_ind' must be a list of whole numbers", path, line.number)
        return make_document(
            optional_string(row, "content", path, line.number) or "",
            [names.name(number, path, line.number) for number in numbers],
            optional_string(row, "title", path, line.number),
            optional_name(row, "uid", path, line.number),
        )

    with TextFile(path) as file:
        yield from good_rows(file.filled_lines(), parse, options, report)


def _read_joined(
    text_path: Path, label_lines: LabelLines | None, options: ReadOptions, report: ReadReport
) -> Iterator[Document]:
    def parse(row: JoinedRow) -> Document:
        labels = [] if label_lines is None or row.labels is None else label_lines.labels(row.labels)
        return make_document(row.text.text, labels, None, None)

    with TextFile(text_path) as texts:
        yield from good_rows(_join(texts, label_lines), parse, options, report)


def _join(texts: TextFile, label_lines: LabelLines | None) -> Iterator[JoinedRow | BadRowError]:
    if label_lines is None:
        for line in texts.lines():
            yield line if isinstance(line, BadRowError) else JoinedRow(line, None)
        return
    for text, labels in zip_longest(texts.lines(), label_lines.rows()):
        if text is None or labels is None:
            shorter = texts.name if text is None else label_lines.path
            longer = label_lines.path if text is None else texts.name
            raise DataError(
                f"it has fewer lines than {longer}; expected one line of labels per text", shorter
            )
        if isinstance(text, BadRowError):
            yield text
        elif isinstance(labels, BadRowError):
            yield labels
        else:
            yield JoinedRow(text, labels)
