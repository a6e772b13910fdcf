"""EURLEX57K as its authors distribute it: one JSON file per law, in the folders train, dev and test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import (
    kind_of,
    label_list,
    make_document,
    optional_name,
    optional_string,
    parse_object,
    string_value,
)
from nlpcapsule.data.readers.lines import BYTE_ORDER_MARK, MAX_LINE_BYTES, decode
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, bad_row, chosen_part, good_rows
from nlpcapsule.errors import BadRowError, DataError

PARTS = ("train", "dev", "test")
SIGNS = (b'"celex_id"', b'"main_body"')
SIGN_BYTES = 65_536


def is_layout(folder: Path) -> bool:
    """Return whether a folder, or one of its parts, holds EURLEX57K files."""
    for place in [folder, *(folder / part for part in PARTS)]:
        first = next((path for path in place.glob("*.json") if path.is_file()), None)
        if first is not None:
            with first.open("rb") as file:
                start = file.read(SIGN_BYTES)
            return any(sign in start for sign in SIGNS)
    return False


def read_eurlex57k(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document]:
    """Read the laws of a folder in the order of their file names; a text is header, recitals and body."""

    def parse(path: Path) -> Document:
        return _parse_law(path, options)

    yield from good_rows(iter(_law_files(source, options)), parse, options, report)


def _law_files(source: Path, options: ReadOptions) -> list[Path | BadRowError]:
    if source.is_file():
        return [source]
    parts = [part for part in PARTS if (source / part).is_dir()]
    folders = [source / part for part in chosen_part(options, parts, source)] if parts else [source]
    files: list[Path | BadRowError] = [
        path for folder in folders for path in sorted(folder.glob("*.json")) if path.is_file()
    ]
    return files


def _parse_law(path: Path, options: ReadOptions) -> Document:
    row = parse_object(_read_small_file(path), path, None)
    for key in ("celex_id", "main_body", *(["concepts"] if options.need_labels else [])):
        if key not in row:
            raise bad_row(f"the key {key!r} of an EURLEX57K file is missing", path)
    passages = [optional_string(row, key, path, None) for key in ("header", "recitals")]
    body = row["main_body"]
    if isinstance(body, list):
        passages += [string_value(part, f"main_body[{place}]", path, None) for place, part in enumerate(body)]
    elif isinstance(body, str):
        passages.append(string_value(body, "main_body", path, None))
    else:
        raise bad_row(f"'main_body' must be a list of strings, found {kind_of(body)}", path)
    return make_document(
        "\n".join(passage for passage in passages if passage),
        label_list(row.get("concepts"), "concepts", path, None),
        optional_string(row, "title", path, None),
        optional_name(row, "celex_id", path, None),
    )


def _read_small_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise DataError(f"it cannot be read ({error.strerror})", path) from error
    if len(raw) > MAX_LINE_BYTES:
        raise bad_row(f"the file is longer than {MAX_LINE_BYTES:,} bytes", path)
    return decode(raw.removeprefix(BYTE_ORDER_MARK), path, 1)
