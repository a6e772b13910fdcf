"""CSV and TSV files with a header: one document per row, quoted cells may span lines."""

import csv
from collections.abc import Iterator
from typing import NamedTuple

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import find_columns, make_document, split_labels
from nlpcapsule.data.readers.lines import MAX_LINE_BYTES, TextFile
from nlpcapsule.data.readers.reading import Place, ReadOptions, parsed
from nlpcapsule.errors import BadRowError, DataError


class TableRow(NamedTuple):
    """The cells of a row and where it begins."""

    at: Place
    cells: list[str]


def read_table(file: TextFile, options: ReadOptions, delimiter: str) -> Iterator[Document | BadRowError]:
    """Read a CSV (delimiter ",") or TSV (delimiter tab) file with a header."""
    rows = table_rows(file, delimiter)
    header = next(rows, None)
    if header is None:
        return
    if isinstance(header, BadRowError):
        raise DataError(f"the header is unusable: {header.problem}", header.path, header.line)
    names = [cell.strip() for cell in header.cells]
    keys = [
        (options.text_key, "--text-key", True),
        (options.labels_key, "--labels-key", options.need_labels),
        # The default id and title columns may be absent, but those named by the user may not.
        (options.id_key, "--id-key", options.id_key != ReadOptions.id_key),
        (options.title_key, "--title-key", options.title_key != ReadOptions.title_key),
    ]
    needed = {
        name: f"name the right one with {option} (a file without a header: --format labels-tab-text)"
        for name, option, is_needed in keys
        if is_needed
    }
    columns = find_columns(names, needed, header.at, [name for name, _, _ in keys])

    def parse(row: TableRow) -> Document:
        if len(row.cells) != len(names):
            problem = f"expected {len(names)} columns as in the header, found {len(row.cells)}"
            raise row.at.bad(problem, "put quotes around cells that hold a delimiter")
        cells = {name: row.cells[place] for name, place in columns.items()}
        labels = cells.get(options.labels_key, "") if options.need_labels else ""
        return make_document(
            cells[options.text_key],
            split_labels(labels, options.separator),
            cells.get(options.title_key),
            cells.get(options.id_key) or None,
        )

    yield from parsed(rows, parse)


def table_rows(file: TextFile, delimiter: str) -> Iterator[TableRow | BadRowError]:
    """Yield the rows of a table, including its header, and errors for rows that cannot be split.

    A blank line is not a row, unless the table has one column: there it is an empty cell.
    """
    # The csv module's limit of 131,072 characters per cell is too low for whole documents.
    csv.field_size_limit(MAX_LINE_BYTES)
    quotes = 0  # in the lines read so far

    def texts() -> Iterator[str]:
        nonlocal quotes
        for line in file.sound_lines(keep_ends=True):
            quotes += line.text.count('"')
            yield line.text

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    width = 0
    while True:
        at, quotes_before = Place(file.name, reader.line_num + 1), quotes
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_balanced = (quotes - quotes_before) % 2 == 0
            yield _broken_row(str(error), at, is_balanced and reader.line_num == at.line)
            continue
        if cells or width == 1:
            width = width or len(cells)
            yield TableRow(at, cells or [""])


def _broken_row(problem: str, at: Place, ends_with_its_line: bool) -> BadRowError:
    """Return the error of a row that cannot be split into cells.

    If the end of the row is unknown, raise it: skipping the row would silently skip good rows, or treat the
    rest of a cell as a row.
    """
    way = "a quote that belongs to the text is doubled, inside a quoted cell"
    if problem == "unexpected end of data":
        raise at.broken("a quote that is opened in this row is never closed", f"close it; {way}")
    broken = f"the row cannot be split into cells ({problem})"
    if not ends_with_its_line:
        raise at.broken(f"{broken}, and its quotes do not tell where it ends", f"fix its quotes; {way}")
    example = '"a ""word"" in quotes"'
    return at.bad(broken, f"put cells with quotes between quotes and double those inside: {example}")
