"""TREC QA in the pseudo-XML of the jacana distribution: tagged lines of tab-separated tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, bad_row, good_rows
from nlpcapsule.errors import BadRowError, quoted

LABELS = {"<positive>": 1, "<negative>": 0}

_BEGIN = re.compile(r"<QApairs id=['\"](.*?)['\"]\s*>", re.IGNORECASE)


class Block(NamedTuple):
    """The lines between one <QApairs> and its end."""

    line: int
    identifier: str
    lines: list[Line]


def read_trecqa_xml(file: TextFile, options: ReadOptions, report: ReadReport) -> Iterator[Question]:
    """Read the questions; only the first line of a sentence, its tokens, is used."""

    def parse(block: Block) -> Question:
        text = None
        candidates = []
        for tag, first in zip(block.lines, block.lines[1:], strict=False):
            kind = tag.text.strip()
            if kind != "<question>" and kind not in LABELS:
                continue
            if first.text.startswith("<"):
                raise bad_row(f"expected tokens behind {kind}", file.name, first.number)
            sentence = " ".join(first.text.split())
            if kind == "<question>":
                text = sentence
            else:
                candidates.append(Candidate(sentence, LABELS[kind]))
        if text is None or not candidates:
            lacking = "<question>" if text is None else "candidate (<positive> or <negative>)"
            raise bad_row(f"question {quoted(block.identifier)} has no {lacking}", file.name, block.line)
        return Question(text, tuple(candidates), block.identifier)

    return good_rows(_blocks(file), parse, options, report)


def _blocks(file: TextFile) -> Iterator[Block | BadRowError]:
    block: Block | None = None
    for line in file.sound_lines():
        begin = _BEGIN.match(line.text.strip())
        if begin or line.text.startswith("<QApairs"):
            if block is not None:
                yield _unclosed(block, file)
            block = Block(line.number, begin[1] if begin else "", [])
            if not begin:
                yield bad_row("<QApairs> has no id, expected <QApairs id='1'>", file.name, line.number)
                block = None
        elif line.text.lower().startswith("</qapairs"):
            if block is not None:
                yield block
            block = None
        elif block is not None:
            block.lines.append(line)
    if block is not None:
        yield _unclosed(block, file)


def _unclosed(block: Block, file: TextFile) -> BadRowError:
    return bad_row(f"question {quoted(block.identifier)} is not closed by </QApairs>", file.name, block.line)
