"""Question TSV files, WikiQA's among them: one candidate per line, the candidates of a question in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers.document_rows import find_columns
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, chosen_part, parsed
from nlpcapsule.errors import BadRowError, DataError, quoted

COLUMNS = {"qid": "qid", "question": "question", "answer": "answer", "label": "label"}
WIKIQA_COLUMNS = {"qid": "QuestionID", "question": "Question", "answer": "Sentence", "label": "Label"}
WIKIQA_PARTS = ("train", "dev", "test")


def is_wikiqa_header(line: str) -> bool:
    """Return whether a line is the header of a WikiQA file."""
    return {WIKIQA_COLUMNS["qid"], WIKIQA_COLUMNS["answer"]} <= set(line.split("\t"))


def wikiqa_files(folder: Path, options: ReadOptions) -> list[Path]:
    """Return the files of the chosen part of a WikiQA folder."""
    files = {part: folder / f"WikiQA-{part}.tsv" for part in WIKIQA_PARTS}
    there = [part for part, path in files.items() if path.exists()]
    return [files[part] for part in chosen_part(options, there, folder)]


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
    places = find_columns(names, dict.fromkeys(needed, hint), header.at)
    order = _QuestionOrder()

    def parse(line: Line) -> tuple[str, str, Candidate]:
        cells = line.text.split("\t")
        if len(cells) != len(names):
            raise line.at.bad(f"expected {len(names)} columns as in the header, found {len(cells)}")
        qid, question, answer = (cells[places[columns[key]]] for key in ("qid", "question", "answer"))
        label = cells[places[columns["label"]]].strip() if options.need_labels else None
        if label not in (None, "0", "1"):
            raise line.at.bad(f"the label must be 0 or 1, found {quoted(label)}")
        order.check(qid.strip(), question, line)
        return qid.strip(), question, Candidate(answer, None if label is None else int(label))

    qid = text = ""
    candidates: list[Candidate] = []
    for row in parsed(lines, parse):
        if isinstance(row, BadRowError):
            yield row
            continue
        if candidates and row[0] != qid:
            yield Question(text, tuple(candidates), qid)
            candidates = []
        qid, text = row[:2]
        candidates.append(row[2])
    if candidates:
        yield Question(text, tuple(candidates), qid)


class _QuestionOrder:
    """Check that the lines of a question are together and repeat its text."""

    def __init__(self) -> None:
        self.finished: set[str] = set()
        self.current: tuple[str, str, int] | None = None  # qid, question, line

    def check(self, qid: str, question: str, line: Line) -> None:
        """Reject a line of an earlier question, or one with another text for the current question."""
        if qid in self.finished:
            hint = "keep the lines of a question together, and give different questions different qids"
            raise line.at.bad(f"question {quoted(qid)} comes back after other questions", hint)
        if self.current is None or qid != self.current[0]:
            if self.current is not None:
                self.finished.add(self.current[0])
            self.current = qid, question, line.number
        elif question != self.current[1]:
            raise line.at.bad(f"question {quoted(qid)} has another text than in line {self.current[2]}")
