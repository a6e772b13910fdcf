"""Read question TSV files: one candidate per line, the candidates of a question in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers.document_rows import shown_names
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import DataError, ReadOptions, ReadReport, bad_row, good_rows
from nlpcapsule.errors import BadRowError, quoted

COLUMNS = {"qid": "qid", "question": "question", "answer": "answer", "label": "label"}


class Pair(NamedTuple):
    """One line: a question and one of its candidates."""

    line: int
    qid: str
    question: str
    candidate: Candidate


def read_question_table(
    file: TextFile, options: ReadOptions, report: ReadReport, columns: Mapping[str, str] | None = None
) -> Iterator[Question]:
    """Read a TSV file with a header; quotes are ordinary characters.

    Args:
        file: The open file.
        options: How to read it.
        report: Filled while reading.
        columns: The names of the columns qid, question, answer and label in this file.

    Yields:
        A question for each run of lines with the same qid. A qid that returns after another one is a bad row:
        in a file merged from several, it is often a different question.
    """
    lines = file.filled_lines("\t")
    header = next(lines, None)
    if header is None:
        return
    if isinstance(header, BadRowError):
        raise DataError(f"the header is unusable: {header.problem}", header.path, header.line)
    pairs = _Pairs(header, columns or COLUMNS, options, file.name)
    first: Pair | None = None
    candidates: list[Candidate] = []
    for pair in good_rows(lines, pairs.parse, options, report):
        if first is not None and pair.qid != first.qid:
            yield Question(first.question, tuple(candidates), first.qid)
            candidates = []
        if not candidates:
            first = pair
        candidates.append(pair.candidate)
    if first is not None:
        yield Question(first.question, tuple(candidates), first.qid)


class _Pairs:
    """Parse the lines of one file and check the order of its questions."""

    def __init__(self, header: Line, columns: Mapping[str, str], options: ReadOptions, path: str) -> None:
        names = [name.strip() for name in header.text.split("\t")]
        for key, name in columns.items():
            if name not in names and (key != "label" or options.need_labels):
                raise DataError(
                    f"the header has no column {name!r}; its columns are: {shown_names(names)}",
                    path,
                    header.number,
                    f"expected tab-separated columns {', '.join(columns.values())}",
                )
        self.path = path
        self.count = len(names)
        self.qid, self.question, self.answer = (
            names.index(columns[key]) for key in ("qid", "question", "answer")
        )
        self.label = names.index(columns["label"]) if options.need_labels else None
        self.finished: set[str] = set()
        self.current: Pair | None = None

    def parse(self, line: Line) -> Pair:
        cells = line.text.split("\t")
        if len(cells) != self.count:
            problem = f"expected {self.count} columns as in the header, found {len(cells)}"
            raise bad_row(problem, self.path, line.number)
        candidate = Candidate(cells[self.answer], self._label(cells, line.number))
        pair = Pair(line.number, cells[self.qid].strip(), cells[self.question], candidate)
        self._check_order(pair)
        return pair

    def _label(self, cells: list[str], line: int) -> int | None:
        if self.label is None:
            return None
        cell = cells[self.label].strip()
        if cell in ("0", "1"):
            return int(cell)
        raise bad_row(f"the label must be 0 or 1, found {quoted(cell)}", self.path, line)

    def _check_order(self, pair: Pair) -> None:
        current = self.current
        if pair.qid in self.finished:
            raise bad_row(
                f"question {quoted(pair.qid)} comes back after other questions",
                self.path,
                pair.line,
                "keep the lines of a question together, and give different questions different qids",
            )
        if current is None or pair.qid != current.qid:
            if current is not None:
                self.finished.add(current.qid)
            self.current = pair
        elif pair.question != current.question:
            raise bad_row(
                f"question {quoted(pair.qid)} has another text than in line {current.line}",
                self.path,
                pair.line,
            )
