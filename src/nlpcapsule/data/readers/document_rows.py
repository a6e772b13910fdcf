"""Build a `Document` from the raw values of a row, with the same rules for every format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.reading import ReadOptions, bad_row
from nlpcapsule.errors import BadRowError, quoted

NAMES_SHOWN = 12


def make_document(text: str, labels: Iterable[str], title: str | None, identifier: str | None) -> Document:
    r"""Build a document: the title becomes its first line, repeated labels are merged.

    A text that already starts with its title is unchanged.

    Example:
        >>> make_document("It rains.", ["weather", "weather"], "Forecast", None)
        Document(text='Forecast\nIt rains.', labels=('weather',), id=None)
    """
    title = (title or "").strip()
    if title and not text.startswith(title):
        text = f"{title}\n{text}" if text else title
    return Document(text, tuple(dict.fromkeys(labels)), identifier)


def split_labels(cell: str, separator: str) -> list[str]:
    """Split the labels of one cell, strip blanks and drop empty labels."""
    return [label.strip() for label in cell.split(separator) if label.strip()]


def parse_object(text: str, path: str | Path, line: int | None) -> dict[str, Any]:
    """Parse a JSON object.

    Args:
        text: The JSON.
        path: For the error.
        line: Its line number, or None if it is a whole file.

    Raises:
        BadRowError: If it is not a JSON object, or repeats a key, which would be ambiguous.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        where = error.lineno if line is None else line
        raise bad_row(f"invalid JSON ({error.msg} at character {error.colno})", path, where) from None
    except _RepeatedKeyError as error:
        raise bad_row(str(error), path, line, "keep one of the two") from None
    except (ValueError, RecursionError) as error:
        raise bad_row(f"invalid JSON ({error})", path, line) from None
    if isinstance(value, dict):
        return value
    hint = None
    if isinstance(value, list):
        hint = "write one object per line, for example with: jq -c '.[]'"
    raise bad_row(f"expected a JSON object, found {kind_of(value)}", path, line, hint)


class _RepeatedKeyError(ValueError):
    """A JSON object has a key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        key = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise _RepeatedKeyError(f"the key {quoted(key)} is repeated")
    return row


def missing_key(
    key: str, option: str, found: Iterable[str], path: str | Path, line: int | None
) -> BadRowError:
    """Return the error for a row without a required key."""
    return bad_row(
        f"the key {key!r} is missing; the row has: {shown_names(found)}",
        path,
        line,
        f"name the right one with {option}",
    )


def document_from_object(
    row: Mapping[str, Any], options: ReadOptions, path: str | Path, line: int | None
) -> Document:
    """Build a document from a JSON object.

    Raises:
        BadRowError: If a key is missing or its value is of the wrong type.
    """
    if options.text_key not in row and {"question", "candidates"} <= row.keys():
        raise BadRowError(
            f"this is a question with candidates, expected a document with the key {options.text_key!r}",
            path,
            line,
            "train on questions with --task answers, and give documents to a label model",
        )
    if options.text_key not in row:
        raise missing_key(options.text_key, "--text-key", row, path, line)
    if options.labels_key not in row and options.need_labels:
        raise missing_key(options.labels_key, "--labels-key", row, path, line)
    return make_document(
        string_value(row[options.text_key], options.text_key, path, line),
        label_list(row[options.labels_key], options.labels_key, path, line) if options.need_labels else (),
        optional_string(row, options.title_key, path, line),
        optional_name(row, options.id_key, path, line),
    )


def string_value(value: object, key: str, path: str | Path, line: int | None) -> str:
    """Return the value if it is a string.

    JSON can escape half of a surrogate pair (a cut-off emoji); such a half cannot be written as UTF-8, so it
    becomes the replacement character U+FFFD.
    """
    if not isinstance(value, str):
        raise bad_row(f"{key!r} must be a string, found {kind_of(value)}", path, line)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def optional_string(row: Mapping[str, Any], key: str, path: str | Path, line: int | None) -> str | None:
    """Return the string under a key, or None if the key is missing or null."""
    return None if row.get(key) is None else string_value(row[key], key, path, line)


def optional_name(row: Mapping[str, Any], key: str, path: str | Path, line: int | None) -> str | None:
    """Return the identifier under a key (a number as its digits), or None if missing or null."""
    return None if row.get(key) is None else _name(row[key], key, path, line)


def label_list(value: object, key: str, path: str | Path, line: int | None) -> list[str]:
    """Return the labels under a JSON key; null means none.

    Raises:
        BadRowError: If it is not a list of strings or numbers, or a label is blank.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        found = f"the string {quoted(value)}" if isinstance(value, str) else kind_of(value)
        raise bad_row(
            f"{key!r} must be a list of strings, found {found}",
            path,
            line,
            'use a list, as in ["one", "two"]',
        )
    labels = [_name(label, f"{key}[{place}]", path, line) for place, label in enumerate(value)]
    if not all(label.strip() for label in labels):
        raise bad_row(f"{key!r} holds a blank label", path, line)
    return labels


def kind_of(value: object) -> str:
    """Return the JSON name of a value's type."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), "an object")


def shown_names(names: Iterable[str]) -> str:
    """Format a list of key or column names for a message, shortened if it is long."""
    every = [quoted(name) for name in names]
    more = ", ..." if len(every) > NAMES_SHOWN else ""
    return ", ".join(every[:NAMES_SHOWN]) + more if every else "nothing"


def _name(value: object, key: str, path: str | Path, line: int | None) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise bad_row(f"{key!r} must be a string or a number, found {kind_of(value)}", path, line)
    return string_value(value, key, path, line)
