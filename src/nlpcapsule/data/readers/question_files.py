"""Read questions of any format: `read_questions` detects the format and streams the questions.

A JSONL row is a question with all its candidates. A TSV file has one candidate per line, those of a question
in a row.
"""

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers import document_rows as fields
from nlpcapsule.data.readers import formats
from nlpcapsule.data.readers.formats import QUESTION_READERS
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import Place, ReadOptions, ReadReport, counted, parsed
from nlpcapsule.errors import BadRowError, DataError, quoted

COLUMNS = {"qid": "qid", "question": "question", "answer": "answer", "label": "label"}


def read_questions(
    source: str | Path, options: ReadOptions | None = None, report: ReadReport | None = None
) -> Iterator[Question]:
    """Stream the questions of a file or standard input ("-"), in order.

    Each has all its candidates. The report is filled, and errors are raised, as by `read_documents`.

    Example:
        >>> for question in read_questions("questions.tsv"):  # doctest: +SKIP
        ...     print(question.text, len(question.candidates))
    """
    options = options or ReadOptions()
    report = ReadReport() if report is None else report
    formats.check_format(options.format, (*formats.QUESTION_FORMATS, *QUESTION_READERS))
    yield from counted(_questions(source, options, report), source, options, report)


def _questions(
    source: str | Path, options: ReadOptions, report: ReadReport
) -> Generator[Question | BadRowError]:
    name = options.format
    if name in QUESTION_READERS:
        yield from QUESTION_READERS[name](Path(source), options, report)
        return
    with TextFile(source) as file:
        if file.empty:
            return
        if name == "auto":
            name = formats.question_file_format(file.name, file.peek())
            report.tell_guess(file.name, name)
        if name == "jsonl":
            yield from parsed(file.filled_lines(), lambda line: _parse_object(line, options))
        else:
            yield from read_question_table(file, options)


def _parse_object(line: Line, options: ReadOptions) -> Question:
    at = line.at
    row = fields.parse_object(line.text, at)
    for key in ("question", "candidates"):
        if key not in row:
            raise _missing_key(key, row, at)
    candidates = row["candidates"]
    if not isinstance(candidates, list):
        raise at.bad(f"'candidates' must be a list, found {fields.kind_of(candidates)}")
    if not candidates:
        raise at.bad("the question has no candidates")
    return Question(
        fields.string_value(row["question"], "question", at),
        tuple(_candidate(value, f"candidates[{i}]", options, at) for i, value in enumerate(candidates)),
        fields.optional_name(row, options.id_key, at),
    )


def _missing_key(key: str, row: dict[str, Any], at: Place) -> BadRowError:
    expected = 'expected {"question": ..., "candidates": [{"text": ..., "label": 0 or 1}, ...]}'
    if "question" not in row and "text" in row:
        hint = "train on documents with --task labels, and give questions to an answer model"
        return BadRowError(f"this is a document, {expected}", at.path, at.line, hint)
    return at.bad(f"the key {key!r} is missing; the row has: {fields.shown_names(row)}", expected)


def _candidate(value: Any, where: str, options: ReadOptions, at: Place) -> Candidate:
    if isinstance(value, str) and not options.need_labels:
        return Candidate(fields.string_value(value, where, at))
    if not isinstance(value, dict) or "text" not in value:
        raise at.bad(f"{where!r} must be an object with 'text' and 'label', found {fields.kind_of(value)}")
    text = fields.string_value(value["text"], f"{where}.text", at)
    if not options.need_labels:
        return Candidate(text)
    label = value.get("label")
    if label not in (0, 1):
        found = "nothing" if label is None else quoted(label)
        raise at.bad(f"the label of {where!r} must be 0 or 1, found {found}")
    return Candidate(text, int(label))


def read_question_table(
    file: TextFile, options: ReadOptions, columns: Mapping[str, str] = COLUMNS
) -> Iterator[Question | BadRowError]:
    """Read a TSV file with a header; quotes are ordinary characters.

    Lines of the same qid form a question. A qid that returns after another one is a bad row: in a file merged
    from several, it is often a different question. `columns` names the columns in this file.
    """
    lines = file.filled_lines("\t")
    header = next(lines, None)
    if header is None:
        return
    if isinstance(header, BadRowError):
        raise DataError(f"the header is unusable: {header.problem}", header.path, header.line)
    names = [name.strip() for name in header.text.split("\t")]
    needed = [name for key, name in columns.items() if key != "label" or options.need_labels]
    hint = f"expected tab-separated columns {', '.join(columns.values())}"
    places = fields.find_columns(names, dict.fromkeys(needed, hint), header.at)
    first_lines: dict[str, tuple[str, Place]] = {}  # qid → question, place; the last is the current question

    def parse(line: Line) -> tuple[str, Candidate]:
        cells = line.text.split("\t")
        if len(cells) != len(names):
            raise line.at.bad(f"expected {len(names)} columns as in the header, found {len(cells)}")
        qid, question, answer = (cells[places[columns[key]]] for key in ("qid", "question", "answer"))
        qid = qid.strip()
        label = cells[places[columns["label"]]].strip() if options.need_labels else None
        if label not in (None, "0", "1"):
            raise line.at.bad(f"the label must be 0 or 1, found {quoted(label)}")
        if qid in first_lines and qid != next(reversed(first_lines)):
            hint = "keep the lines of a question together, and give different questions different qids"
            raise line.at.bad(f"question {quoted(qid)} comes back after other questions", hint)
        text, first = first_lines.setdefault(qid, (question, line.at))
        if question != text:
            raise line.at.bad(f"question {quoted(qid)} has another text than in line {first.line}")
        return qid, Candidate(answer, None if label is None else int(label))

    qid = ""
    candidates: list[Candidate] = []
    for row in parsed(lines, parse):
        if isinstance(row, BadRowError):
            yield row
            continue
        if candidates and row[0] != qid:
            yield Question(first_lines[qid][0], tuple(candidates), qid)
            candidates = []
        qid = row[0]
        candidates.append(row[1])
    if candidates:
        yield Question(first_lines[qid][0], tuple(candidates), qid)
