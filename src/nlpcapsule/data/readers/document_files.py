"""Read documents of any format: `read_documents` detects the format and streams the rows."""

from collections.abc import Generator, Iterator
from pathlib import Path

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers import document_rows as fields
from nlpcapsule.data.readers import formats
from nlpcapsule.data.readers.formats import DOCUMENT_READERS
from nlpcapsule.data.readers.lines import STDIN, Line, TextFile, is_stream
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, counted, parsed
from nlpcapsule.data.readers.tables import read_table
from nlpcapsule.errors import BadRowError, DataError


def read_documents(
    source: str | Path, options: ReadOptions | None = None, report: ReadReport | None = None
) -> Iterator[Document]:
    """Stream the documents of a file, a folder in a known layout, or standard input ("-"), in order.

    Documents without labels are included and counted. The report is filled while reading. A source that
    cannot be read, has no rows, or only bad ones is a `DataError`; a row that is not skipped a `BadRowError`.

    Example:
        >>> for document in read_documents("train.jsonl"):  # doctest: +SKIP
        ...     print(document.labels, document.text[:60])
    """
    options = options or ReadOptions()
    report = ReadReport() if report is None else report
    formats.check_format(options.format, (*formats.FILE_FORMATS, *DOCUMENT_READERS))
    yield from counted(_documents(source, options, report), source, options, report)


def _documents(
    source: str | Path, options: ReadOptions, report: ReadReport
) -> Generator[Document | BadRowError]:
    path, name = Path(source), options.format
    from_stdin = str(source) == STDIN
    if not from_stdin and path.is_dir():
        name = formats.document_folder_format(path) if name == "auto" else name
        if name not in DOCUMENT_READERS or name == "svmlight":
            raise DataError(f"this is a folder, expected a file for the format {name!r}", path)
        yield from DOCUMENT_READERS[name](path, options, report)
        return
    with TextFile(source) as file:
        if file.empty:
            return
        if name == "auto":
            name = formats.document_file_format(file.name, file.peek(), options)
            report.tell_guess(file.name, name)
        if name not in DOCUMENT_READERS:
            yield from _read_file(name, file, options)
            return
    if is_stream(source):  # such a reader opens the file again, and other files in its folder
        what = "standard input" if from_stdin else "a pipe or a device"
        raise DataError(f"the format {name!r} cannot be read from {what}", file.name, hint="name a file")
    yield from DOCUMENT_READERS[name](path, options, report)


def _read_file(name: str, file: TextFile, options: ReadOptions) -> Iterator[Document | BadRowError]:
    def from_json(line: Line) -> Document:
        return fields.document_from_object(fields.parse_object(line.text, line.at), options, line.at)

    def from_labels_and_text(line: Line) -> Document:
        labels, tab, text = line.text.partition("\t")
        if not tab:
            raise line.at.bad("expected labels, a tab and the text; there is no tab")
        return fields.make_document(text, fields.split_labels(labels, options.separator))

    if name == "jsonl":
        return parsed(file.filled_lines(), from_json)
    if name in ("csv", "tsv"):
        return read_table(file, options, "," if name == "csv" else "\t")
    if name == "labels-tab-text":
        return parsed(file.filled_lines("\t"), from_labels_and_text)
    if options.need_labels:
        problem = "a plain text file has no labels, and labels are needed here"
        hint = "give a JSONL, CSV or TSV file, or lines of labels, a tab and the text (labels-tab-text)"
        raise DataError(problem, file.name, hint=hint)
    return parsed(file.lines(), lambda line: Document(line.text))
