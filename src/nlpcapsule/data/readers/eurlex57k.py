"""EURLEX57K as its authors distribute it: one JSON file per law, in the folders train, dev and test."""

from collections.abc import Iterator
from pathlib import Path

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers import document_rows as fields
from nlpcapsule.data.readers.lines import BYTE_ORDER_MARK, MAX_LINE_BYTES, decode
from nlpcapsule.data.readers.reading import Place, ReadOptions, ReadReport, chosen_part, parsed
from nlpcapsule.errors import BadRowError

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


def read_eurlex57k(
    source: Path, options: ReadOptions, report: ReadReport
) -> Iterator[Document | BadRowError]:
    """Read the laws of a folder in the order of their file names; a text is header, recitals and body."""
    files: list[Path | BadRowError] = [source]
    if not source.is_file():
        parts = [part for part in PARTS if (source / part).is_dir()]
        folders = [source / part for part in chosen_part(options, parts, source)] if parts else [source]
        files = [path for folder in folders for path in sorted(folder.glob("*.json")) if path.is_file()]
    return parsed(files, lambda path: _parse_law(path, options))


def _parse_law(path: Path, options: ReadOptions) -> Document:
    at = Place(path)
    row = fields.parse_object(_read_small_file(at), at)
    for key in ("celex_id", "main_body", *(["concepts"] if options.need_labels else [])):
        if key not in row:
            raise at.bad(f"the key {key!r} of an EURLEX57K file is missing")
    passages = [fields.optional_string(row, key, at) for key in ("header", "recitals")]
    body = row["main_body"]
    if not isinstance(body, list | str):
        raise at.bad(f"'main_body' must be a list of strings, found {fields.kind_of(body)}")
    parts = body if isinstance(body, list) else [body]
    passages += [fields.string_value(part, f"main_body[{place}]", at) for place, part in enumerate(parts)]
    return fields.make_document(
        "\n".join(passage for passage in passages if passage),
        fields.label_list(row.get("concepts"), "concepts", at),
        fields.optional_string(row, "title", at),
        fields.optional_name(row, "celex_id", at),
    )


def _read_small_file(at: Place) -> str:
    try:
        with Path(at.path).open("rb") as file:
            raw = file.read(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise at.broken(f"it cannot be read ({error.strerror})") from error
    if len(raw) > MAX_LINE_BYTES:
        raise at.bad(f"the file is longer than {MAX_LINE_BYTES:,} bytes")
    return decode(raw.removeprefix(BYTE_ORDER_MARK), at)
