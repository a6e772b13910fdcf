"""Read questions of any format: `read_questions` detects the format and streams the questions."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from nlpcapsule.data.documents import Candidate, Question
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
from nlpcapsule.data.readers.question_tables import (
    COLUMNS,
    WIKIQA_COLUMNS,
    read_question_table,
    wikiqa_files,
)
from nlpcapsule.data.readers.reading import Place, ReadOptions, ReadReport, counted, parsed
from nlpcapsule.data.readers.trecqa import read_trecqa_xml
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
    yield from counted(_questions(source, options, report), source, options, report)


def _questions(
    source: str | Path, options: ReadOptions, report: ReadReport
) -> Generator[Question | BadRowError]:
    files: list[str | Path] = [source]
    name = options.format
    if str(source) != STDIN and Path(source).is_dir():
        name = question_folder_format(Path(source)) if name == "auto" else name
        if name != "wikiqa":
            raise DataError(f"this is a folder, expected a file for the format {name!r}", source)
        files = [*wikiqa_files(Path(source), options)]
    for path in files:
        with TextFile(path) as file:
            if not file.empty:
                yield from _read_file(name, file, options, report)


def _read_file(
    name: str, file: TextFile, options: ReadOptions, report: ReadReport
) -> Iterator[Question | BadRowError]:
    first_line = file.peek()
    if name == "auto":
        name = question_file_format(file.name, first_line)
        report.tell_guess(file.name, name)
    if name == "jsonl":
        return parsed(file.filled_lines(), lambda line: _parse_object(line, options))
    if name == "trecqa" and first_line.lstrip().startswith("<"):
        return read_trecqa_xml(file)
    return read_question_table(file, options, WIKIQA_COLUMNS if name == "wikiqa" else COLUMNS)


def _parse_object(line: Line, options: ReadOptions) -> Question:
    at = line.at
    row = parse_object(line.text, at)
    for key in ("question", "candidates"):
        if key not in row:
            raise _missing_key(key, row, at)
    candidates = row["candidates"]
    if not isinstance(candidates, list):
        raise at.bad(f"'candidates' must be a list, found {kind_of(candidates)}")
    if not candidates:
        raise at.bad("the question has no candidates")
    return Question(
        string_value(row["question"], "question", at),
        tuple(_candidate(value, f"candidates[{i}]", options, at) for i, value in enumerate(candidates)),
        optional_name(row, options.id_key, at),
    )


def _missing_key(key: str, row: dict[str, Any], at: Place) -> BadRowError:
    expected = 'expected {"question": ..., "candidates": [{"text": ..., "label": 0 or 1}, ...]}'
    if "question" not in row and "text" in row:
        hint = "train on documents with --task labels, and give questions to an answer model"
        return BadRowError(f"this is a document, {expected}", at.path, at.line, hint)
    return at.bad(f"the key {key!r} is missing; the row has: {shown_names(row)}", expected)


def _candidate(value: Any, where: str, options: ReadOptions, at: Place) -> Candidate:
    if isinstance(value, str) and not options.need_labels:
        return Candidate(string_value(value, where, at))
    if not isinstance(value, dict) or "text" not in value:
        raise at.bad(f"{where!r} must be an object with 'text' and 'label', found {kind_of(value)}")
    text = string_value(value["text"], f"{where}.text", at)
    if not options.need_labels:
        return Candidate(text)
    label = value.get("label")
    if label not in (0, 1):
        found = "nothing" if label is None else quoted(label)
        raise at.bad(f"the label of {where!r} must be 0 or 1, found {found}")
    return Candidate(text, int(label))
