"""Read label files that accompany a raw text file: one line of labels per line of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nlpcapsule.data.readers.document_rows import optional_string, parse_object
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import Place, whole_number
from nlpcapsule.errors import BadRowError, DataError, quoted

NAME_FILES = ("lbl.json", "lbl.json.gz", "lbl.raw.txt", "Y.txt")

HEADERS = {
    "svmlight": (re.compile(r"\d+ \d+ \d+"), "points features labels"),
    "sparse": (re.compile(r"\d+ \d+"), "points labels"),
}

LabelKind = Literal["words", "sparse", "svmlight"]


def is_svmlight_header(line: str) -> bool:
    """Return whether a line is the header of an svmlight-like file: "points features labels"."""
    return HEADERS["svmlight"][0].fullmatch(line.strip()) is not None


class LabelNames:
    """The names of numbered labels from a file in the folder; without one, the number is the name."""

    def __init__(self, folder: Path) -> None:
        self.path = next((folder / name for name in NAME_FILES if (folder / name).exists()), None)
        self._names = None if self.path is None else _distinct(_read_names(self.path))

    def name(self, number: int, at: Place) -> str:
        """Return the name of a label, or raise `BadRowError` if the file of names has no such label."""
        if self._names is None:
            return str(number)
        if not 0 <= number < len(self._names):
            raise at.bad(f"label {number} is not among the {len(self._names):,} of {self.path}")
        return self._names[number]


class LabelLines:
    """A label file of one of three kinds.

    Args:
        path: The file.
        kind: "words" (names with blanks between them), "sparse" (a header, then `label:1.0` entries) or
            "svmlight" (a header, then labels with commas between them in front of the features).
    """

    def __init__(self, path: Path, kind: LabelKind) -> None:
        self.path = path
        self.kind = kind
        self._names = LabelNames(path.parent)

    def rows(self) -> Iterator[Line | BadRowError]:
        """Yield the label lines after the header.

        Raises:
            DataError: If the header is wrong or announces a different number of lines.
        """
        with TextFile(self.path) as file:
            lines = file.lines()
            promised = None if self.kind == "words" else self._read_header(next(lines, None))
            count = 0
            for line in lines:
                count += 1
                yield line
        if promised is not None and promised != count:
            raise DataError(f"the header promises {promised:,} lines, found {count:,}", self.path)

    def labels(self, line: Line) -> list[str]:
        """Return the labels in one line, or raise `BadRowError` if it is malformed."""
        if self.kind == "words":
            return line.text.split()
        if self.kind == "sparse":
            return [self._numbered(entry.partition(":")[0], line) for entry in line.text.split()]
        # There may be thousands of features after the labels; only the part before them is split.
        head = line.text.partition(" ")[0]
        if ":" in head:
            return []
        return [self._numbered(number, line) for number in head.split(",") if number]

    def _read_header(self, line: Line | BadRowError | None) -> int:
        header, expected = HEADERS[self.kind]
        if not isinstance(line, Line) or not header.fullmatch(line.text.strip()):
            raise DataError(f"expected a header of numbers: {expected}", self.path, 1)
        promised = whole_number(line.text.split()[0])
        if promised is None:
            raise line.at.broken(f"the header promises too many lines: {quoted(line.text)}")
        return promised

    def _numbered(self, number: str, line: Line) -> str:
        label = whole_number(number)
        if label is None:
            raise line.at.bad(f"expected a label's number, found {quoted(number)}")
        return self._names.name(label, line.at)


def _read_names(path: Path) -> Iterator[str]:
    with TextFile(path) as file:
        for line in file.sound_lines():
            if path.name.startswith("lbl.json"):
                row = parse_object(line.text, line.at)
                yield (optional_string(row, "title", line.at) or "").strip()
            else:
                yield line.text.strip()


def _distinct(names: Iterator[str]) -> list[str]:
    """Append its number to a name that is blank or repeated, so that labels stay distinct."""
    distinct: dict[str, None] = {}
    for number, name in enumerate(names):
        distinct[f"{name} #{number}".lstrip() if not name or name in distinct else name] = None
    return list(distinct)
