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

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers import document_rows as fields
from nlpcapsule.data.readers import reading
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import Place, ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError, DataError, quoted

LabelKind = Literal["words", "sparse", "svmlight"]

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
NAME_FILES = ("lbl.json", "lbl.json.gz", "lbl.raw.txt", "Y.txt")
HEADERS = {
    "svmlight": (re.compile(r"\d+ \d+ \d+"), "points features labels"),
    "sparse": (re.compile(r"\d+ \d+"), "points labels"),
}


def is_layout(folder: Path) -> bool:
    """Return whether a folder holds a part of such a data set."""
    return any(_part_file(folder, part) for part in PREFIXES)


def is_svmlight_header(line: str) -> bool:
    """Return whether a line is the header of an svmlight-like file: "points features labels"."""
    return HEADERS["svmlight"][0].fullmatch(line.strip()) is not None


def read_extreme(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document | BadRowError]:
    """Read a part of a folder, a file of JSON rows, or a raw text file with its label file."""
    if source.is_file():
        files = [source]
    else:
        found = {part: path for part in PREFIXES if (path := _part_file(source, part))}
        files = [found[part] for part in reading.chosen_part(options, list(found), source)]
    for path in files:
        if path.name.endswith(JSON_SUFFIXES):
            yield from _read_json_rows(path, options)
        else:
            yield from _read_joined(path, _label_file(path, options))


def read_svmlight(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document | BadRowError]:
    """Read the labels of an svmlight-like file and the texts of its raw text file.

    Without the latter there is no text: the features are counts of unknown words.
    """
    prefix = source.name.removesuffix(".gz").removesuffix(".txt")
    candidates = [prefix + suffix for suffix in TEXT_SUFFIXES]
    for name in candidates:
        if (source.parent / name).exists():
            return _read_joined(source.parent / name, (source, "svmlight"))
    problem = "an svmlight file holds numbered features, from which the text cannot be restored"
    hint = f"put the raw text into its folder, one text per line, as one of: {', '.join(candidates)}"
    raise DataError(problem, source, hint=hint)


def _part_file(folder: Path, part: str) -> Path | None:
    names = (prefix + suffix for suffix in (*JSON_SUFFIXES, *TEXT_SUFFIXES) for prefix in PREFIXES[part])
    return next((folder / name for name in names if (folder / name).exists()), None)


def _label_file(text_path: Path, options: ReadOptions) -> tuple[Path, LabelKind] | None:
    folder, name = text_path.parent, text_path.name.removesuffix(".gz")
    suffix = next((suffix for suffix in TEXT_SUFFIXES if name.endswith(suffix)), ".txt")
    candidates = {pattern.format(name.removesuffix(suffix)): kind for pattern, kind in LABEL_FILES.items()}
    for candidate, kind in candidates.items():
        if (folder / candidate).exists() and folder / candidate != text_path:
            return folder / candidate, kind
    if not options.need_labels:
        return None
    hint = f"put it into the same folder, as one of: {', '.join(candidates)}"
    raise DataError("the file of its labels is missing", text_path, hint=hint)


def _read_json_rows(path: Path, options: ReadOptions) -> Iterator[Document | BadRowError]:
    names = LabelNames(path.parent)

    def parse(line: Line) -> Document:
        at = line.at
        row = fields.parse_object(line.text, at)
        if not row.keys() & {"title", "content"}:
            raise at.bad("the row has neither 'title' nor 'content'")
        if "target_ind" not in row and options.need_labels:
            raise at.bad("the key 'target_ind' (the labels' numbers) is missing")
        numbers = row.get("target_ind") or []
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise at.bad("'target_ind' must be a list of whole numbers")
        return fields.make_document(
            fields.optional_string(row, "content", at) or "",
            [names.name(number, at) for number in numbers],
            fields.optional_string(row, "title", at),
            fields.optional_name(row, "uid", at),
        )

    with TextFile(path) as file:
        yield from reading.parsed(file.filled_lines(), parse)


def _read_joined(
    text_path: Path, label_file: tuple[Path, LabelKind] | None
) -> Iterator[Document | BadRowError]:
    """Read one document per line of text, with the labels in the same line of the label file, if any."""
    with TextFile(text_path) as texts:
        if label_file is None:
            yield from reading.parsed(texts.lines(), lambda line: fields.make_document(line.text, []))
            return
        for text, labels in zip_longest(texts.lines(), _label_rows(*label_file)):
            if text is None or labels is None:
                names = (texts.name, str(label_file[0]))
                shorter, longer = names if text is None else names[::-1]
                problem = f"it has fewer lines than {longer}; expected one line of labels per text"
                raise DataError(problem, shorter)
            if isinstance(text, BadRowError):
                yield text
            elif isinstance(labels, BadRowError):
                yield labels
            else:
                yield fields.make_document(text.text, labels)


def _label_rows(path: Path, kind: LabelKind) -> Iterator[list[str] | BadRowError]:
    """Yield the labels of each line of a label file; a header must announce the number of lines.

    Its kind is "words" (names with blanks between them), "sparse" (a header, then `label:1.0` entries) or
    "svmlight" (a header, then labels with commas between them in front of the features).
    """
    names = LabelNames(path.parent)

    def parse(line: Line) -> list[str]:
        if kind == "words":
            return line.text.split()
        if kind == "sparse":
            return [names.numbered(entry.partition(":")[0], line.at) for entry in line.text.split()]
        # There may be thousands of features after the labels; only the part before them is split.
        head = line.text.partition(" ")[0]
        return [names.numbered(number, line.at) for number in head.split(",") if number and ":" not in head]

    with TextFile(path) as file:
        lines, count = file.lines(), 0
        promised = None if kind == "words" else _read_header(next(lines, None), kind, path)
        for row in reading.parsed(lines, parse):
            count += 1
            yield row
    if promised is not None and promised != count:
        raise DataError(f"the header promises {promised:,} lines, found {count:,}", path)


def _read_header(line: Line | BadRowError | None, kind: LabelKind, path: Path) -> int:
    header, expected = HEADERS[kind]
    if not isinstance(line, Line) or not header.fullmatch(line.text.strip()):
        raise DataError(f"expected a header of numbers: {expected}", path, 1)
    promised = reading.whole_number(line.text.split()[0])
    if promised is None:
        raise line.at.broken(f"the header promises too many lines: {quoted(line.text)}")
    return promised


class LabelNames:
    """The names of numbered labels from a file in the folder; without one, the number is the name.

    A name that is blank or repeated gets its number, so that labels stay distinct.
    """

    def __init__(self, folder: Path) -> None:
        self.path = next((folder / name for name in NAME_FILES if (folder / name).exists()), None)
        self._names: list[str] | None = None
        if self.path is not None:
            distinct: dict[str, None] = {}
            for number, name in enumerate(_read_names(self.path)):
                distinct[f"{name} #{number}".lstrip() if not name or name in distinct else name] = None
            self._names = list(distinct)

    def name(self, number: int, at: Place) -> str:
        """Return the name of a label, or raise `BadRowError` if the file of names has no such label."""
        if self._names is None:
            return str(number)
        if not 0 <= number < len(self._names):
            raise at.bad(f"label {number} is not among the {len(self._names):,} of {self.path}")
        return self._names[number]

    def numbered(self, text: str, at: Place) -> str:
        """Return the name of a label whose number is written as digits."""
        number = reading.whole_number(text)
        if number is None:
            raise at.bad(f"expected a label's number, found {quoted(text)}")
        return self.name(number, at)


def _read_names(path: Path) -> Iterator[str]:
    with TextFile(path) as file:
        for line in file.sound_lines():
            if path.name.startswith("lbl.json"):
                row = fields.parse_object(line.text, line.at)
                yield (fields.optional_string(row, "title", line.at) or "").strip()
            else:
                yield line.text.strip()
