"""RCV1-v2 as distributed by Lewis et al. (2004): files of tokens, and one file that gives the topics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import make_document
from nlpcapsule.data.readers.lines import MAX_LINE_BYTES, TextFile
from nlpcapsule.data.readers.reading import (
    ReadOptions,
    ReadReport,
    bad_row,
    chosen_part,
    good_rows,
    whole_number,
)
from nlpcapsule.errors import BadRowError, DataError, quoted

TOKEN_FILES = "lyrl2004_tokens_*.dat*"
TOPIC_FILES = ("rcv1-v2.topics.qrels", "rcv1-v2.topics.qrels.gz")


class Story(NamedTuple):
    """A story's lines and where it begins."""

    path: str
    line: int
    identifier: str
    lines: list[str]


def is_layout(folder: Path) -> bool:
    """Return whether a folder holds RCV1-v2's token files."""
    return any(folder.glob(TOKEN_FILES))


def is_token_file(path: Path) -> bool:
    """Return whether a file is named like one of the token files."""
    return path.match(TOKEN_FILES)


def read_rcv1(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document]:
    """Read the token files of one part, or one token file, and the topics from the same folder."""
    folder = source.parent if source.is_file() else source
    files = [source] if source.is_file() else _token_files(folder, options)
    topics = _topics_beside(folder, options)

    def parse(story: Story) -> Document:
        number = whole_number(story.identifier)
        if number is None:
            raise bad_row(f"'.I' needs a number, found {quoted(story.identifier)}", story.path, story.line)
        if not story.lines or story.lines[0].strip() != ".W":
            raise bad_row("expected a line '.W' behind the line '.I'", story.path, story.line)
        text = " ".join(line.strip() for line in story.lines[1:] if line.strip())
        return make_document(text, topics.get(number, ()), None, story.identifier)

    for path in files:
        with TextFile(path, encoding="latin-1") as file:
            yield from good_rows(_stories(file), parse, options, report)


def read_topics(path: Path) -> dict[int, tuple[str, ...]]:
    """Read the topics of every story: lines `TOPIC story 1`, grouped by story.

    The 800,000 stories share a few thousand topic sets, each of which is kept in memory once.
    """
    topics: dict[int, tuple[str, ...]] = {}
    sets: dict[tuple[str, ...], tuple[str, ...]] = {}
    with TextFile(path, encoding="latin-1") as file:
        for story, pairs in groupby(_topic_pairs(file), key=lambda pair: pair[0]):
            names = topics.get(story, ()) + tuple(topic for _, topic in pairs)
            topics[story] = sets.setdefault(names, names)
    return topics


def _token_files(folder: Path, options: ReadOptions) -> list[Path]:
    named = {
        part: sorted(folder.glob(f"lyrl2004_tokens_{part}*.dat*"), key=lambda path: path.name)
        for part in ("train", "test")
    }
    parts = chosen_part(options, [part for part, files in named.items() if files], folder)
    return [path for part in parts for path in named[part]]


def _topics_beside(folder: Path, options: ReadOptions) -> dict[int, tuple[str, ...]]:
    for name in TOPIC_FILES:
        if (folder / name).exists():
            return read_topics(folder / name)
    if options.need_labels:
        raise DataError(
            f"the file of topics is missing ({' or '.join(TOPIC_FILES)})",
            folder,
            hint="put it into the folder",
        )
    return {}


def _topic_pairs(file: TextFile) -> Iterator[tuple[int, str]]:
    for line in file.sound_lines():
        fields = line.text.split()
        if not fields:
            continue
        story = whole_number(fields[1]) if len(fields) == 3 else None
        if story is None:
            raise DataError(f"expected 'TOPIC story 1', found {quoted(line.text)}", file.name, line.number)
        yield story, fields[0]


def _stories(file: TextFile) -> Iterator[Story | BadRowError]:
    story: Story | None = None
    size = 0
    for line in file.sound_lines():
        if line.text.startswith(".I"):
            if story is not None:
                yield _whole(story, size)
            story, size = Story(file.name, line.number, line.text[2:].strip(), []), 0
        elif story is not None:
            size += len(line.text)
            if size <= MAX_LINE_BYTES:
                story.lines.append(line.text)
        elif line.text.strip():
            yield bad_row("expected a line '.I' and a story's number", file.name, line.number)
    if story is not None:
        yield _whole(story, size)


def _whole(story: Story, size: int) -> Story | BadRowError:
    if size <= MAX_LINE_BYTES:
        return story
    return bad_row(f"the story is longer than {MAX_LINE_BYTES:,} bytes", story.path, story.line)
