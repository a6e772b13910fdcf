"""CSV and TSV files with a header: one document per row, quoted cells may span lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import NamedTuple

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import make_document, shown_names, split_labels
from nlpcapsule.data.readers.lines import MAX_LINE_BYTES, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, bad_row, good_rows
from nlpcapsule.errors import BadRowError, DataError


class TableRow(NamedTuple):
    """The cells of a row and the line in which it begins."""

    line: int
    cells: list[str]


class Columns(NamedTuple):
    """Where in a row the wanted values stand; None: nowhere."""

    text: int
    labels: int | None
    id: int | None
    title: int | None
    width: int


def read_table(
    file: TextFile, options: ReadOptions, report: ReadReport, delimiter: str
) -> Iterator[Document]:
    """Reads a CSV (delimiter ",") or TSV (delimiter tab) file with a header."""
    rows = table_rows(file, delimiter)
    header = next(rows, None)
    if header is None:
        return
    if isinstance(header, BadRowError):
        raise DataError(f"the header is unusable: {header.problem}", header.path, header.line)
    columns = find_columns(header, options, file.name)

    def parse(row: TableRow) -> Document:
        if len(row.cells) != columns.width:
            raise bad_row(
                f"expected {columns.width} columns as in the header, found {len(row.cells)}",
                file.name,
                row.line,
                "put quotes around cells that hold a delimiter",
            )
        labels = (
            []
            if columns.labels is None or not options.need_labels
            else split_labels(row.cells[columns.labels], options.separator)
        )
        return make_document(
            row.cells[columns.text],
            labels,
            None if columns.title is None else row.cells[columns.title],
            None if columns.id is None else row.cells[columns.id] or None,
        )

    yield from good_rows(rows, parse, options, report)


def find_columns(header: TableRow, options: ReadOptions, path: str) -> Columns:
    """Finds the wanted columns in the header.

    Raises:
        DataError: A column that is needed, or that the options name, is not there.
    """
    names = [cell.strip() for cell in header.cells]
    wanted = [
        (options.text_key, "--text-key", True),
        (options.labels_key, "--labels-key", options.need_labels),
        # The usual id and title columns may be absent, but one that was asked for by name may not.
        (options.id_key, "--id-key", options.id_key != ReadOptions.id_key),
        (options.title_key, "--title-key", options.title_key != ReadOptions.title_key),
    ]
    for name, option, needed in wanted:
        if needed and name not in names:
            raise DataError(
                f"the header has no column {name!r}; its columns are: {shown_names(names)}",
                path,
                header.line,
                f"name the right one with {option} (a file without a header: --format labels-tab-text)",
            )
        if names.count(name) > 1:
            raise DataError(f"the header has the column {name!r} twice", path, header.line)
    text, labels, identifier, title = (names.index(name) if name in names else None for name, _, _ in wanted)
    assert text is not None  # the loop above has seen to it
    return Columns(text, labels, identifier, title, len(names))


def table_rows(file: TextFile, delimiter: str) -> Iterator[TableRow | BadRowError]:
    """The rows of a table that are not blank, its header among them, and those that are no rows."""
    # The csv module's own limit of 131,072 characters per cell is too low for whole documents.
    csv.field_size_limit(MAX_LINE_BYTES)
    lines = (line.text for line in file.sound_lines(keep_ends=True))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        first_line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                # Skipping this row would skip all that follows it without a word.
                raise DataError(
                    "a quote that is opened in this row is never closed",
                    file.name,
                    first_line,
                    "close it; a quote that belongs to the text is doubled, inside a quoted cell",
                ) from None
            yield bad_row(
                f"the row cannot be split into cells ({error})",
                file.name,
                first_line,
                'put cells with quotes between quotes and double those inside: "a ""word"" in quotes"',
            )
            continue
        if cells:
            yield TableRow(first_line, cells)
