"""Read a file with the names and alternative names of labels.

.json     {"1597": "school legislation", …} or {"1597": {"name": "…", "alternatives": […]}, …}
.jsonl    {"label": "1597", "name": "school legislation", "alternatives": […]}
.csv, .tsv     a header, columns label and name; a column alternatives with ";" between entries

Any of them may be gzipped; alternatives may be left out, and other keys and columns are ignored.

An object of the first kind may also use EuroVoc's keys: "label" or "title" for the name, "alt_labels"
for the alternatives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nlpcapsule.data.readers import document_rows as fields
from nlpcapsule.data.readers.lines import TextFile, is_stream
from nlpcapsule.data.readers.reading import Place
from nlpcapsule.data.readers.tables import TableRow, table_rows
from nlpcapsule.errors import BadRowError, DataError, quoted

_NAME_KEYS = ("name", "title", "label")
_ALTERNATIVE_KEYS = ("alternatives", "alt_labels")
_SEPARATOR = ";"
_COLUMNS = dict.fromkeys(("label", "name"), "name the columns label and name")


@dataclass(frozen=True)
class LabelName:
    """The name of a label and other names for it."""

    name: str
    alternatives: tuple[str, ...] = ()

    @property
    def forms(self) -> tuple[str, ...]:
        """The name and its alternatives."""
        return (self.name, *self.alternatives)


class Thesaurus(dict[str, LabelName]):
    """The names of labels, in the order in which they were given.

    Example:
        >>> concepts = {"1": LabelName("cheese"), "2": LabelName("blue cheese", ("Stilton",))}
        >>> Thesaurus(concepts).texts(["2", "cake"])
        ['blue cheese; Stilton', 'cake']
    """

    @classmethod
    def read(cls, path: str | Path) -> Thesaurus:
        """Read a file of label names; a label that is missing or appears twice is a DataError."""
        names = cls()
        for label, name, at in _entries(Path(path)):
            if label in names:
                raise at.broken(f"the label {quoted(label)} is named twice", "keep one of the two")
            names[label] = name
        if not names:
            raise DataError("names no label", path, hint="check that this is the right file")
        return names

    def to_json(self) -> str:
        """Return the text of a .json file that `read` reads."""
        rows = (f"{json.dumps(label)}: {json.dumps(asdict(name))}" for label, name in self.items())
        return "{\n" + ",\n".join(rows) + "\n}\n"

    def __missing__(self, label: str) -> LabelName:
        """Return the name of a label without one: the label itself."""
        return LabelName(label)

    def texts(self, labels: Iterable[str]) -> list[str]:
        """Return the text of each label: its name and its alternatives."""
        return ["; ".join(self[label].forms) for label in labels]


def _entries(path: Path) -> Iterator[tuple[str, LabelName, Place]]:
    """Yield labels, their names, and their places in the file."""
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    readers = {".json": _from_object, ".jsonl": _from_lines, ".csv": _from_table, ".tsv": _from_table}
    if suffix not in readers:
        problem = "is no file of label names: expected a .json, .jsonl, .csv or .tsv file, plain or gzipped"
        raise DataError(problem, path, hint="rename or convert it")
    if is_stream(path):
        raise DataError("is a pipe or a device, expected a file", path, hint="save the label names to a file")
    try:
        with TextFile(path) as file:
            yield from readers[suffix](file)
    except BadRowError as error:  # whose hint is to skip the row, but names are never skipped
        raise DataError(error.problem, error.path, error.line, "fix it") from None


def _from_object(file: TextFile) -> Iterator[tuple[str, LabelName, Place]]:
    at = Place(file.name)
    text = "".join(line.text for line in file.sound_lines(keep_ends=True))
    for key, value in fields.parse_object(text, at).items():
        label = fields.string_value(key, "label", at)
        row = {"name": value} if isinstance(value, str) else value
        if not isinstance(row, dict):
            hint = 'write a string, or an object such as {"name": "…", "alternatives": ["…"]}'
            raise at.broken(f"the label {quoted(label)} has {fields.kind_of(value)} for a name", hint)
        yield label, _label_name(label, row, _NAME_KEYS, at), at


def _from_lines(file: TextFile) -> Iterator[tuple[str, LabelName, Place]]:
    for line in file.filled_lines():
        if isinstance(line, BadRowError):
            raise line
        row = fields.parse_object(line.text, line.at)
        label = _label(row, line.at)
        yield label, _label_name(label, row, _NAME_KEYS[:2], line.at), line.at


def _from_table(file: TextFile) -> Iterator[tuple[str, LabelName, Place]]:
    rows = table_rows(file, "\t" if ".tsv" in Path(file.name).suffixes else ",")
    header = _sound(next(rows, TableRow(Place(file.name, 1), [])))
    names = [cell.strip() for cell in header.cells]
    columns = fields.find_columns(names, _COLUMNS, header.at, ["alternatives"])
    for at, cells in map(_sound, rows):
        if len(cells) > len(names):
            problem = f"expected {len(names)} columns as in the header, found {len(cells)}"
            raise at.broken(problem, "put quotes around cells that hold a delimiter")
        # A row may end before its last columns.
        found = {name: cells[place] if place < len(cells) else "" for name, place in columns.items()}
        row: dict[str, Any] = {"label": found["label"].strip(), "name": found["name"]}
        row["alternatives"] = fields.split_labels(found.get("alternatives", ""), _SEPARATOR)
        label = _label(row, at)
        yield label, _label_name(label, row, ("name",), at), at


def _sound(row: TableRow | BadRowError) -> TableRow:
    """Return the row, or raise its error: no bad row is skipped."""
    if isinstance(row, BadRowError):
        raise DataError(row.problem, row.path, row.line, "fix its quotes")
    return row


def _label(row: Mapping[str, Any], at: Place) -> str:
    if "label" not in row:
        problem = f"the key 'label' is missing; the row has: {fields.shown_names(row)}"
        raise at.broken(problem, 'write each row as {"label": "…", "name": "…"}')
    label = fields.optional_name(row, "label", at) or ""
    if not label.strip():
        raise at.broken("'label' holds a blank label", "fix it")
    return label


def _label_name(label: str, row: Mapping[str, Any], keys: tuple[str, ...], at: Place) -> LabelName:
    name = next((row[key] for key in keys if row.get(key) is not None), None)
    if not isinstance(name, str) or not name.strip():
        found = "a blank one" if isinstance(name, str) else fields.kind_of(name)
        problem = f"the label {quoted(label)} has no name: expected a string under {keys[0]!r}, found {found}"
        raise at.broken(problem, "give it one, or leave the label out")
    alternatives = next((row[key] for key in _ALTERNATIVE_KEYS if row.get(key) is not None), None)
    name = fields.string_value(name, keys[0], at).strip()
    return LabelName(name, tuple(fields.label_list(alternatives, "alternatives", at)))
