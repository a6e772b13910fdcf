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

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import (
    make_document,
    optional_name,
    optional_string,
    parse_object,
)
from nlpcapsule.data.readers.label_lines import LabelKind, LabelLines, LabelNames
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, chosen_part, parsed
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


def is_layout(folder: Path) -> bool:
    """Return whether a folder holds a part of such a data set."""
    return any(_part_file(folder, part) for part in PREFIXES)


def is_row(keys: set[str]) -> bool:
    """Return whether a JSON row with these keys comes from the repository."""
    return "target_ind" in keys and bool(keys & {"title", "content"})


def is_text_file(path: Path) -> bool:
    """Return whether a file is named like one of the raw text files."""
    return path.name.removesuffix(".gz").endswith(TEXT_SUFFIXES)


def read_extreme(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document | BadRowError]:
    """Read a part of a folder, a file of JSON rows, or a raw text file with its label file."""
    if source.is_file():
        files = [source]
    else:
        found = {part: path for part in PREFIXES if (path := _part_file(source, part))}
        files = [found[part] for part in chosen_part(options, list(found), source)]
    for path in files:
        if path.name.endswith(JSON_SUFFIXES):
            yield from _read_json_rows(path, options)
        else:
            yield from _read_joined(path, _label_lines(path, options))


def read_svmlight(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document | BadRowError]:
    """Read the labels of an svmlight-like file and the texts of its raw text file.

    Raises:
        DataError: If there is no raw text file: the features are counts of unknown words.
    """
    prefix = source.name.removesuffix(".gz").removesuffix(".txt")
    candidates = [prefix + suffix for suffix in TEXT_SUFFIXES]
    for name in candidates:
        if (source.parent / name).exists():
            return _read_joined(source.parent / name, LabelLines(source, "svmlight"))
    problem = "an svmlight file holds numbered features, from which the text cannot be restored"
    hint = f"put the raw text into its folder, one text per line, as one of: {', '.join(candidates)}"
    raise DataError(problem, source, hint=hint)


def _part_file(folder: Path, part: str) -> Path | None:
    names = (prefix + suffix for suffix in (*JSON_SUFFIXES, *TEXT_SUFFIXES) for prefix in PREFIXES[part])
    return next((folder / name for name in names if (folder / name).exists()), None)


def _label_lines(text_path: Path, options: ReadOptions) -> LabelLines | None:
    folder, name = text_path.parent, text_path.name.removesuffix(".gz")
    suffix = next((suffix for suffix in TEXT_SUFFIXES if name.endswith(suffix)), ".txt")
    candidates = {pattern.format(name.removesuffix(suffix)): kind for pattern, kind in LABEL_FILES.items()}
    for candidate, kind in candidates.items():
        if (folder / candidate).exists() and folder / candidate != text_path:
            return LabelLines(folder / candidate, kind)
    if not options.need_labels:
        return None
    hint = f"put it into the same folder, as one of: {', '.join(candidates)}"
    raise DataError("the file of its labels is missing", text_path, hint=hint)


def _read_json_rows(path: Path, options: ReadOptions) -> Iterator[Document | BadRowError]:
    names = LabelNames(path.parent)

    def parse(line: Line) -> Document:
        at = line.at
        row = parse_object(line.text, at)
        if not row.keys() & {"title", "content"}:
            raise at.bad("the row has neither 'title' nor 'content'")
        if "target_ind" not in row and options.need_labels:
            raise at.bad("the key 'target_ind' (the labels' numbers) is missing")
        numbers = row.get("target_ind") or []
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise at.bad("'target_ind' must be a list of whole numbers")
        return make_document(
            optional_string(row, "content", at) or "",
            [names.name(number, at) for number in numbers],
            optional_string(row, "title", at),
            optional_name(row, "uid", at),
        )

    with TextFile(path) as file:
        yield from parsed(file.filled_lines(), parse)


def _read_joined(text_path: Path, label_lines: LabelLines | None) -> Iterator[Document | BadRowError]:
    """Read one document per line of text, with the labels in the same line of the label file."""

    def parse(row: tuple[Line, Line | None]) -> Document:
        text, labels = row
        return make_document(text.text, label_lines.labels(labels) if label_lines and labels else [])

    with TextFile(text_path) as texts:
        yield from parsed(_join(texts, label_lines), parse)


def _join(
    texts: TextFile, label_lines: LabelLines | None
) -> Iterator[tuple[Line, Line | None] | BadRowError]:
    if label_lines is None:
        yield from parsed(texts.lines(), lambda line: (line, None))
        return
    for text, labels in zip_longest(texts.lines(), label_lines.rows()):
        if text is None or labels is None:
            shorter, longer = texts.name, str(label_lines.path)
            if labels is None:
                shorter, longer = longer, shorter
            raise DataError(
                f"it has fewer lines than {longer}; expected one line of labels per text", shorter
            )
        if isinstance(text, BadRowError):
            yield text
        else:
            yield labels if isinstance(labels, BadRowError) else (text, labels)
