"""TREC QA in the pseudo-XML of the jacana distribution: tagged lines of tab-separated tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers.lines import Block, TextFile
from nlpcapsule.data.readers.reading import parsed
from nlpcapsule.errors import BadRowError, quoted

LABELS = {"<positive>": 1, "<negative>": 0}

_BEGIN = re.compile(r"\s*<QApairs id=['\"](.*?)['\"]\s*>", re.IGNORECASE)


def read_trecqa_xml(file: TextFile) -> Iterator[Question | BadRowError]:
    """Read the questions; only the first line of a sentence, its tokens, is used."""
    blocks = file.blocks(
        "question",
        lambda text: bool(_BEGIN.match(text)) or text.startswith("<QApairs"),
        lambda text: text.lower().startswith("</qapairs"),
    )
    return parsed(blocks, _parse_block)


def _parse_block(block: Block) -> Question:
    at, begin = block.first.at, _BEGIN.match(block.first.text)
    if begin is None:
        raise at.bad("<QApairs> has no id, expected <QApairs id='1'>")
    if not block.closed:
        raise at.bad(f"question {quoted(begin[1])} is not closed by </QApairs>")
    text = None
    candidates = []
    for tag, first in zip(block.lines, block.lines[1:], strict=False):
        kind = tag.text.strip()
        if kind != "<question>" and kind not in LABELS:
            continue
        if first.text.startswith("<"):
            raise first.at.bad(f"expected tokens behind {kind}")
        sentence = " ".join(first.text.split())
        if kind == "<question>":
            text = sentence
        else:
            candidates.append(Candidate(sentence, LABELS[kind]))
    if text is None or not candidates:
        lacking = "<question>" if text is None else "candidate (<positive> or <negative>)"
        raise at.bad(f"question {quoted(begin[1])} has no {lacking}")
    return Question(text, tuple(candidates), begin[1])
