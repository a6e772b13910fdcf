"""Build a `Document` from the raw values of a row, with the same rules for every format."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.reading import Place, ReadOptions
from nlpcapsule.errors import BadRowError, quoted
from nlpcapsule.strict_json import RepeatedKeyError, without_twins

NAMES_SHOWN = 12
_DECODER = json.JSONDecoder(object_pairs_hook=without_twins)  # `json.loads` would make one for each row


def make_document(
    text: str, labels: Iterable[str], title: str | None = None, identifier: str | None = None
) -> Document:
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


def parse_object(text: str, at: Place) -> dict[str, Any]:
    """Parse a JSON object; anything else, or a repeated key, which would be ambiguous, is a `BadRowError`."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        said = "unexpected byte order mark" if text.startswith("\ufeff") else error.msg
        problem = f"invalid JSON ({said} at character {error.colno})"
        raise Place(at.path, at.line or error.lineno).bad(problem) from None
    except RepeatedKeyError as error:
        raise at.bad(f"the key {quoted(error.key)} is repeated", "keep one of the two") from None
    except (ValueError, RecursionError) as error:
        raise at.bad(f"invalid JSON ({error})") from None
    if isinstance(value, dict):
        return value
    hint = "write one object per line, for example with: jq -c '.[]'" if isinstance(value, list) else None
    raise at.bad(f"expected a JSON object, found {kind_of(value)}", hint)


def document_from_object(row: Mapping[str, Any], options: ReadOptions, at: Place) -> Document:
    """Build a document from a JSON object; a missing key or a value of the wrong type is a `BadRowError`."""
    if options.text_key not in row and {"question", "candidates"} <= row.keys():
        problem = f"this is a question with candidates, expected a document with the key {options.text_key!r}"
        hint = "train on questions with --task answers, and give documents to a label model"
        raise BadRowError(problem, at.path, at.line, hint)
    needed = [(options.text_key, "--text-key"), (options.labels_key, "--labels-key")]
    for key, option in needed if options.need_labels else needed[:1]:
        if key not in row:
            problem = f"the key {key!r} is missing; the row has: {shown_names(row)}"
            raise at.bad(problem, f"name the right one with {option}")
    return make_document(
        string_value(row[options.text_key], options.text_key, at),
        label_list(row[options.labels_key], options.labels_key, at) if options.need_labels else (),
        optional_string(row, options.title_key, at),
        optional_name(row, options.id_key, at),
    )


def string_value(value: object, key: str, at: Place) -> str:
    """Return the value if it is a string.

    JSON can escape half of a surrogate pair (a cut-off emoji); such a half cannot be written as UTF-8, so it
    becomes the replacement character U+FFFD.
    """
    if not isinstance(value, str):
        raise at.bad(f"{key!r} must be a string, found {kind_of(value)}")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def optional_string(row: Mapping[str, Any], key: str, at: Place) -> str | None:
    """Return the string under a key, or None if the key is missing or null."""
    return None if row.get(key) is None else string_value(row[key], key, at)


def optional_name(row: Mapping[str, Any], key: str, at: Place) -> str | None:
    """Return the identifier under a key (a number as its digits), or None if missing or null."""
    return None if row.get(key) is None else _name(row[key], key, at)


def label_list(value: object, key: str, at: Place) -> list[str]:
    """Return the labels under a JSON key, strings or numbers, none of them blank; null means none."""
    if value is None:
        return []
    if not isinstance(value, list):
        found = f"the string {quoted(value)}" if isinstance(value, str) else kind_of(value)
        hint = 'use a list, as in ["one", "two"]'
        raise at.bad(f"{key!r} must be a list of strings, found {found}", hint)
    labels = value
    if not all(type(label) is str and label.isascii() for label in value):  # most labels are used as they are
        labels = [_name(label, f"{key}[{place}]", at) for place, label in enumerate(value)]
    if not all(label.strip() for label in labels):
        raise at.bad(f"{key!r} holds a blank label")
    return labels


def find_columns(
    names: Sequence[str], needed: Mapping[str, str], at: Place, optional: Iterable[str] = ()
) -> dict[str, int]:
    """Return the positions of columns in a header, without optional ones that are absent.

    A needed column that is missing (`needed` says what to do about it), or one that occurs twice, is a
    DataError.
    """
    for name, hint in needed.items():
        if name not in names:
            problem = f"the header has no column {name!r}; its columns are: {shown_names(names)}"
            raise at.broken(problem, hint)
    found = [name for name in dict.fromkeys([*needed, *optional]) if name in names]
    for name in found:
        if names.count(name) > 1:
            raise at.broken(f"the header has the column {name!r} twice", "keep one of the two")
    return {name: names.index(name) for name in found}


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


def _name(value: object, key: str, at: Place) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise at.bad(f"{key!r} must be a string or a number, found {kind_of(value)}")
    return string_value(value, key, at)
