"""Read questions of any format: `read_questions` detects the format and streams the questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers import wikiqa
from nlpcapsule.data.readers.document_rows import (
    kind_of,
    optional_name,
    parse_object,
    shown_names,
    string_value,
)
from nlpcapsule.data.readers.formats import (
    QUESTION_FORMATS,
    check_format,
    question_file_format,
    question_folder_format,
)
from nlpcapsule.data.readers.lines import STDIN, Line, TextFile
from nlpcapsule.data.readers.question_tables import read_question_table
from nlpcapsule.data.readers.reading import bad_row, good_rows, refuse_nothing_read
from nlpcapsule.data.readers.trecqa import ReadOptions, ReadReport, read_trecqa_xml
from nlpcapsule.errors import BadRowError, DataError, quoted


def read_questions(
    source: str | Path, options: ReadOptions | None = None, report: ReadReport | None = None
) -> Iterator[Question]:
    """Stream the questions of a file, a WikiQA folder, or standard input.

    Args:
        source: The file or folder; "-" is standard input.
        options: How to read it.
        report: Filled while reading.

    Yields:
        The questions in the source's order, each with all its candidates.

    Raises:
        DataError: If the source cannot be read, has no rows, or has only bad ones.
        BadRowError: If a row is bad, and bad rows are not skipped.

    Example:
        >>> for question in read_questions("questions.tsv"):  # doctest: +SKIP
        ...     print(question.text, len(question.candidates))
    """
    options = options or ReadOptions()
    report = ReadReport() if report is None else report
    check_format(options.format, QUESTION_FORMATS)
    rows, bad_rows, examples = 0, report.bad_rows, len(report.examples)
    for question in _questions(source, options, report):
        rows += 1
        report.rows += 1
        yield question
    refuse_nothing_read(source, rows, report.bad_rows - bad_rows, report.examples[examples:])


def _questions(source: str | Path, options: ReadOptions, report: ReadReport) -> Iterator[Question]:
    files: list[str | Path] = [source]
    name = options.format
    if str(source) != STDIN and Path(source).is_dir():
        name = question_folder_format(Path(source)) if name == "auto" else name
        if name != "wikiqa":
            raise DataError(f"this is a folder, expected a file for the format {name!r}", source)
        files = [*wikiqa.part_files(Path(source), options)]
    for path in files:
        with TextFile(path) as file:
            yield from _read_file(name, file, options, report)


def _read_file(name: str, file: TextFile, options: ReadOptions, report: ReadReport) -> Iterator[Question]:
    if file.empty:
        return iter(())
    first_line = file.peek()
    if name == "auto":
        name = question_file_format(file.name, first_line)
        report.tell_guess(file.name, name)
    if name == "jsonl":
        return _read_jsonl(file, options, report)
    if name == "trecqa" and first_line.lstrip().startswith("<"):
        return read_trecqa_xml(file, options, report)
    return read_question_table(file, options, report, wikiqa.COLUMNS if name == "wikiqa" else None)


def _read_jsonl(file: TextFile, options: ReadOptions, report: ReadReport) -> Iterator[Question]:
    def parse(line: Line) -> Question:
        row = parse_object(line.text, file.name, line.number)
        for key in ("question", "candidates"):
            if key not in row:
                raise _missing_key(key, row, file.name, line.number)
        candidates = row["candidates"]
        if not isinstance(candidates, list):
            problem = f"'candidates' must be a list, found {kind_of(candidates)}"
            raise bad_row(problem, file.name, line.number)
        if not candidates:
            raise bad_row("the question has no candidates", file.name, line.number)
        return Question(
            string_value(row["question"], "question", file.name, line.number),
            tuple(
                _candidate(value, f"candidates[{place}]", options, file.name, line.number)
                for place, value in enumerate(candidates)
            ),
            optional_name(row, options.id_key, file.name, line.number),
        )

    return good_rows(file.filled_lines(), parse, options, report)


def _missing_key(key: str, row: dict[str, Any], path: str, line: int) -> BadRowError:
    expected = 'expected {"question": ..., "candidates": [{"text": ..., "label": 0 or 1}, ...]}'
    if "question" not in row and "text" in row:
        hint = "train on documents with --task labels, and give questions to an answer model"
        return BadRowError(f"this is a document, {expected}", path, line, hint)
    return bad_row(f"the key {key!r} is missing; the row has: {shown_names(row)}", path, line, expected)


def _candidate(value: Any, where: str, options: ReadOptions, path: str, line: int) -> Candidate:
    if isinstance(value, str) and not options.need_labels:
        return Candidate(string_value(value, where, path, line))
    if not isinstance(value, dict) or "text" not in value:
        expected = "an object with 'text' and 'label'"
        raise bad_row(f"{where!r} must be {expected}, found {kind_of(value)}", path, line)
    text = string_value(value["text"], f"{where}.text", path, line)
    if not options.need_labels:
        return Candidate(text)
    label = value.get("label")
    if label not in (0, 1):
        found = "nothing" if label is None else quoted(label)
        raise bad_row(f"the label of {where!r} must be 0 or 1, found {found}", path, line)
    return Candidate(text, int(label))
