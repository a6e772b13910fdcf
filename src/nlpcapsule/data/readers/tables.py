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
    """The positions of the needed values in a row; None if absent."""

    text: int
    labels: int | None
    id: int | None
    title: int | None
    width: int


def read_table(
    file: TextFile, options: ReadOptions, report: ReadReport, delimiter: str
) -> Iterator[Document]:
    """Read a CSV (delimiter ",") or TSV (delimiter tab) file with a header."""
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
    """Find the needed columns in the header.

    Raises:
        DataError: If a column that is needed, or that the options name, is missing.
    """
    names = [cell.strip() for cell in header.cells]
    wanted = [
        (options.text_key, "--text-key", True),
        (options.labels_key, "--labels-key", options.need_labels),
        # The default id and title columns may be absent, but those named by the user may not.
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
    assert text is not None  # the loop above ensures it
    return Columns(text, labels, identifier, title, len(names))


def table_rows(file: TextFile, delimiter: str) -> Iterator[TableRow | BadRowError]:
    """Yield the rows of a table, including its header, and errors for rows that cannot be split.

    A blank line is not a row, unless the table has one column: there it is an empty cell.
    """
    # The csv module's limit of 131,072 characters per cell is too low for whole documents.
    csv.field_size_limit(MAX_LINE_BYTES)
    lines = _CountedLines(file)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        first_line, quotes = reader.line_num + 1, lines.quotes
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            one_line, balanced = reader.line_num == first_line, (lines.quotes - quotes) % 2 == 0
            yield _broken_row(str(error), file.name, first_line, one_line and balanced)
            continue
        if cells or width == 1:
            width = width or len(cells)
            yield TableRow(first_line, cells or [""])


class _CountedLines:
    """Lines of a file for the csv module, with the quotes in the lines read so far."""

    def __init__(self, file: TextFile) -> None:
        self._lines = file.sound_lines(keep_ends=True)
        self.quotes = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.quotes += line.text.count('"')
            yield line.text


def _broken_row(problem: str, path: str, line: int, ends_with_its_line: bool) -> BadRowError:
    """Return the error of a row that cannot be split into cells.

    Raises:
        DataError: If the end of the row is unknown: skipping it would silently skip good rows, or treat the
            rest of a cell as a row.
    """
    way = "a quote that belongs to the text is doubled, inside a quoted cell"
    if problem == "unexpected end of data":
        raise DataError("a quote that is opened in this row is never closed", path, line, f"close it; {way}")
    if not ends_with_its_line:
        raise DataError(
            f"the row cannot be split into cells ({problem}), and its quotes do not tell where it ends",
            path,
            line,
            f"fix its quotes; {way}",
        )
    return bad_row(
        f"the row cannot be split into cells ({problem})",
        path,
        line,
        'put cells with quotes between quotes and double those inside: "a ""word"" in quotes"',
    )
