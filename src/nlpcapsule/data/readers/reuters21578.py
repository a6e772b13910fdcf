"""Reuters-21578 as distributed: SGML files of 1,000 stories, divided by the ModApte split."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import make_document
from nlpcapsule.data.readers.lines import Block, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, chosen_part, parsed
from nlpcapsule.errors import BadRowError

FILES = "reut2-*.sgm*"
PARTS = {"TRAIN": "train", "TEST": "test"}

_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*?)</TEXT>", re.DOTALL)
_FURNITURE = re.compile(r"<(TITLE|AUTHOR|DATELINE)>.*?</\1>", re.DOTALL)
_AGENCY_SIGNATURE = re.compile(r"\s*\breuters?\s*$", re.IGNORECASE)


def read_reuters21578(
    source: Path, options: ReadOptions, report: ReadReport
) -> Iterator[Document | BadRowError]:
    """Read one part of the ModApte split from a folder of SGML files, or from one of them."""
    parts = chosen_part(options, list(PARTS.values()), source)
    files = [source] if source.is_file() else sorted(source.glob(FILES))
    for path in files:
        # The files are older than UTF-8, and one holds stray bytes; latin-1 reads any byte.
        with TextFile(path, encoding="latin-1") as file:
            begins, ends = (lambda text: text.startswith("<REUTERS")), (lambda text: "</REUTERS>" in text)
            stories = file.blocks("story", begins, ends, keep_ends=True)
            documents = parsed(stories, lambda story: _parse_story(story, parts))
            yield from (document for document in documents if document is not None)


def _parse_story(story: Block, parts: list[str]) -> Document | None:
    """Return the document of a story; None if it is in no chosen part of the split."""
    at = story.first.at
    if not story.closed:
        raise at.bad("the story is not closed by </REUTERS>")
    sgml = "".join(line.text for line in (story.first, *story.lines))
    attributes = dict(_ATTRIBUTE.findall(sgml[: sgml.find(">")]))
    for name in ("LEWISSPLIT", "TOPICS", "NEWID"):
        if name not in attributes:
            raise at.bad(f"the REUTERS tag has no attribute {name}")
    if attributes["TOPICS"] != "YES" or PARTS.get(attributes["LEWISSPLIT"]) not in parts:
        return None
    topics, text = _TOPICS.search(sgml), _TEXT.search(sgml)
    if topics is None or text is None:
        raise at.bad(f"the story has no element {'TOPICS' if topics is None else 'TEXT'}")
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
