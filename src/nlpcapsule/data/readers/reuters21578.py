"""Reuters-21578 as distributed: SGML files of 1,000 stories, divided by the ModApte split."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import make_document
from nlpcapsule.data.readers.lines import MAX_LINE_BYTES, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, bad_row, chosen_part, good_rows
from nlpcapsule.errors import BadRowError

PARTS = ["train", "test"]

_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*?)</TEXT>", re.DOTALL)
_FURNITURE = re.compile(r"<(TITLE|AUTHOR|DATELINE)>.*?</\1>", re.DOTALL)
_AGENCY_SIGNATURE = re.compile(r"\s*\breuters?\s*$", re.IGNORECASE)


class Story(NamedTuple):
    """The SGML of one story and where it begins."""

    path: str
    line: int
    sgml: str


def is_layout(folder: Path) -> bool:
    """Return whether a folder holds Reuters-21578's SGML files."""
    return any(folder.glob("reut2-*.sgm*"))


def read_reuters21578(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document]:
    """Read one part of the ModApte split from a folder of SGML files, or from one of them."""
    parts = chosen_part(options, PARTS, source)
    files = [source] if source.is_file() else sorted(source.glob("reut2-*.sgm*"))

    def parse(story: Story) -> Document | None:
        attributes = _attributes(story)
        return _parse_story(story, attributes) if modapte_part(attributes) in parts else None

    for path in files:
        # The files are older than UTF-8, and one holds stray bytes; latin-1 reads any byte.
        with TextFile(path, encoding="latin-1") as file:
            for document in good_rows(_stories(file), parse, options, report):
                if document is not None:
                    yield document


def modapte_part(attributes: dict[str, str]) -> str | None:
    """Return the part of the ModApte split that a story belongs to, or None if it is unused."""
    if attributes.get("TOPICS") != "YES":
        return None
    return {"TRAIN": "train", "TEST": "test"}.get(attributes["LEWISSPLIT"])


def _stories(file: TextFile) -> Iterator[Story | BadRowError]:
    lines: list[str] = []
    begin = size = 0
    for line in file.sound_lines(keep_ends=True):
        if line.text.startswith("<REUTERS"):
            if lines:
                yield bad_row("the story is not closed by </REUTERS>", file.name, begin)
            lines, begin, size = [line.text], line.number, 0
        elif lines and size <= MAX_LINE_BYTES:
            lines.append(line.text)
            size += len(line.text)
        if lines and "</REUTERS>" in line.text:
            if size > MAX_LINE_BYTES:
                yield bad_row(f"the story is longer than {MAX_LINE_BYTES:,} bytes", file.name, begin)
            else:
                yield Story(file.name, begin, "".join(lines))
            lines = []
    if lines:
        yield bad_row("the story is not closed by </REUTERS>", file.name, begin)


def _attributes(story: Story) -> dict[str, str]:
    attributes = dict(_ATTRIBUTE.findall(story.sgml[: story.sgml.find(">")]))
    for name in ("LEWISSPLIT", "TOPICS", "NEWID"):
        if name not in attributes:
            raise bad_row(f"the REUTERS tag has no attribute {name}", story.path, story.line)
    return attributes


def _parse_story(story: Story, attributes: dict[str, str]) -> Document:
    topics, text = _TOPICS.search(story.sgml), _TEXT.search(story.sgml)
    if topics is None or text is None:
        missing = "TOPICS" if topics is None else "TEXT"
        raise bad_row(f"the story has no element {missing}", story.path, story.line)
    title, body = _TITLE.search(text[1]), _BODY.search(text[1])
    # A story without markup (TYPE="UNPROC") has no BODY: its whole text is the body.
    passage = body[1] if body else _FURNITURE.sub("", text[1])
    return make_document(
        _AGENCY_SIGNATURE.sub("", _plain(passage)),
        [_plain(topic) for topic in _TOPIC.findall(topics[1])],
        _plain(title[1]) if title else None,
        attributes["NEWID"],
    )


def _plain(sgml: str) -> str:
    return html.unescape(sgml).strip()
