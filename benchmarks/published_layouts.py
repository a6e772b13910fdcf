"""Read data sets in the layouts that their authors distribute: a plugin of `nlpcapsule`.

    nlpcapsule --plugin benchmarks/published_layouts.py train FOLDER --format reuters21578 …

eurlex57k       one JSON file per law, in the folders train, dev and test
reuters21578    SGML files of 1,000 stories, divided by the ModApte split
rcv1            RCV1-v2 by Lewis et al. (2004): files of tokens, and one file that gives the topics
trecqa          TREC QA as the jacana distribution's pseudo-XML: tagged lines of tokens
wikiqa          WikiQA-train.tsv and its companions, or their folder
"""

import html
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.data.readers import document_rows as fields
from nlpcapsule.data.readers.document_rows import make_document
from nlpcapsule.data.readers.formats import DOCUMENT_READERS, QUESTION_READERS
from nlpcapsule.data.readers.lines import BYTE_ORDER_MARK, MAX_LINE_BYTES, Line, TextFile, decode
from nlpcapsule.data.readers.question_files import read_question_table
from nlpcapsule.data.readers.reading import (
    Place,
    ReadOptions,
    ReadReport,
    chosen_part,
    parsed,
    whole_number,
)
from nlpcapsule.errors import BadRowError, DataError, quoted

PARTS = ("train", "dev", "test")

STORY_FILES = "reut2-*.sgm*"
MODAPTE_PARTS = {"TRAIN": "train", "TEST": "test"}
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*?)</TEXT>", re.DOTALL)
_FURNITURE = re.compile(r"<(TITLE|AUTHOR|DATELINE)>.*?</\1>", re.DOTALL)
_AGENCY_SIGNATURE = re.compile(r"\s*\breuters?\s*$", re.IGNORECASE)

TOPIC_FILES = ("rcv1-v2.topics.qrels", "rcv1-v2.topics.qrels.gz")

TREC_LABELS = {"<positive>": 1, "<negative>": 0}
_TREC_BEGIN = re.compile(r"\s*<QApairs id=['\"](.*?)['\"]\s*>", re.IGNORECASE)
WIKIQA_COLUMNS = {"qid": "QuestionID", "question": "Question", "answer": "Sentence", "label": "Label"}


class Block(NamedTuple):
    """Lines that belong together: the first, those after it, and whether the end was found."""

    first: Line
    lines: list[Line]
    closed: bool


@DOCUMENT_READERS.register("eurlex57k")
def read_eurlex57k(
    source: Path, options: ReadOptions, report: ReadReport
) -> Iterator[Document | BadRowError]:
    """Read the laws of a folder in the order of their file names; a text is header, recitals and body."""
    files: list[Path | BadRowError] = [source]
    if not source.is_file():
        parts = [part for part in PARTS if (source / part).is_dir()]
        folders = [source / part for part in chosen_part(options, parts, source)] if parts else [source]
        files = [path for folder in folders for path in sorted(folder.glob("*.json")) if path.is_file()]
    return parsed(files, lambda path: _parse_law(path, options))


def _parse_law(path: Path, options: ReadOptions) -> Document:
    at = Place(path)
    row = fields.parse_object(_read_small_file(at), at)
    for key in ("celex_id", "main_body", *(["concepts"] if options.need_labels else [])):
        if key not in row:
            raise at.bad(f"the key {key!r} of an EURLEX57K file is missing")
    passages = [fields.optional_string(row, key, at) for key in ("header", "recitals")]
    body = row["main_body"]
    if not isinstance(body, list | str):
        raise at.bad(f"'main_body' must be a list of strings, found {fields.kind_of(body)}")
    parts = body if isinstance(body, list) else [body]
    passages += [fields.string_value(part, f"main_body[{place}]", at) for place, part in enumerate(parts)]
    return make_document(
        "\n".join(passage for passage in passages if passage),
        fields.label_list(row.get("concepts"), "concepts", at),
        fields.optional_string(row, "title", at),
        fields.optional_name(row, "celex_id", at),
    )


def _read_small_file(at: Place) -> str:
    try:
        with Path(at.path).open("rb") as file:
            raw = file.read(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise at.broken(f"it cannot be read ({error.strerror})") from error
    if len(raw) > MAX_LINE_BYTES:
        raise at.bad(f"the file is longer than {MAX_LINE_BYTES:,} bytes")
    return decode(raw.removeprefix(BYTE_ORDER_MARK), at)


@DOCUMENT_READERS.register("reuters21578")
def read_reuters21578(
    source: Path, options: ReadOptions, report: ReadReport
) -> Iterator[Document | BadRowError]:
    """Read one part of the ModApte split from a folder of SGML files, or from one of them."""
    parts = chosen_part(options, list(MODAPTE_PARTS.values()), source)
    files = [source] if source.is_file() else sorted(source.glob(STORY_FILES))
    for path in files:
        # The files are older than UTF-8, and one holds stray bytes; latin-1 reads any byte.
        with TextFile(path, encoding="latin-1") as file:
            begins, ends = (lambda text: text.startswith("<REUTERS")), (lambda text: "</REUTERS>" in text)
            stories = blocks(file, "story", begins, ends, keep_ends=True)
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
    if attributes["TOPICS"] != "YES" or MODAPTE_PARTS.get(attributes["LEWISSPLIT"]) not in parts:
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


@DOCUMENT_READERS.register("rcv1")
def read_rcv1(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Document | BadRowError]:
    """Read the token files of one part, or one token file, and the topics from the same folder."""
    folder, files = (source.parent, [source]) if source.is_file() else (source, [])
    if not files:
        named = {part: sorted(folder.glob(f"lyrl2004_tokens_{part}*.dat*")) for part in ("train", "test")}
        parts = chosen_part(options, [part for part, paths in named.items() if paths], folder)
        files = [path for part in parts for path in named[part]]
    topics = _read_topics(folder, options)

    def parse(story: Block) -> Document:
        identifier, first = story.first.text[2:].strip(), story.first
        number = whole_number(identifier)
        if number is None:
            raise first.at.bad(f"'.I' needs a number, found {quoted(identifier)}")
        lines = [line.text.strip() for line in story.lines]
        if lines[:1] != [".W"]:
            raise first.at.bad("expected a line '.W' behind the line '.I'")
        text = " ".join(line for line in lines[1:] if line)
        return make_document(text, topics.get(number, ()), None, identifier)

    for path in files:
        with TextFile(path, encoding="latin-1") as file:
            stray = "expected a line '.I' and a story's number"
            yield from parsed(blocks(file, "story", lambda text: text.startswith(".I"), stray=stray), parse)


def _read_topics(folder: Path, options: ReadOptions) -> dict[int, tuple[str, ...]]:
    """Read the topics of every story: lines `TOPIC story 1`, grouped by story.

    The 800,000 stories share a few thousand topic sets, each of which is kept in memory once.
    """
    topics: dict[int, tuple[str, ...]] = {}
    sets: dict[tuple[str, ...], tuple[str, ...]] = {}
    path = next((folder / name for name in TOPIC_FILES if (folder / name).exists()), None)
    if path is not None:
        with TextFile(path, encoding="latin-1") as file:
            for story, pairs in groupby(_topic_pairs(file), key=lambda pair: pair[0]):
                names = topics.get(story, ()) + tuple(topic for _, topic in pairs)
                topics[story] = sets.setdefault(names, names)
    elif options.need_labels:
        problem = f"the file of topics is missing ({' or '.join(TOPIC_FILES)})"
        raise DataError(problem, folder, hint="put it into the folder")
    return topics


def _topic_pairs(file: TextFile) -> Iterator[tuple[int, str]]:
    for line in file.sound_lines():
        cells = line.text.split()
        if not cells:
            continue
        story = whole_number(cells[1]) if len(cells) == 3 else None
        if story is None:
            raise line.at.broken(f"expected 'TOPIC story 1', found {quoted(line.text)}")
        yield story, cells[0]


@QUESTION_READERS.register("trecqa")
def read_trecqa(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Question | BadRowError]:
    """Read a file of questions; only the first line of a sentence, its tokens, is used."""
    with TextFile(source) as file:
        questions = blocks(
            file,
            "question",
            lambda text: bool(_TREC_BEGIN.match(text)) or text.startswith("<QApairs"),
            lambda text: text.lower().startswith("</qapairs"),
        )
        yield from parsed(questions, _parse_trecqa)


def _parse_trecqa(block: Block) -> Question:
    at, begin = block.first.at, _TREC_BEGIN.match(block.first.text)
    if begin is None:
        raise at.bad("<QApairs> has no id, expected <QApairs id='1'>")
    if not block.closed:
        raise at.bad(f"question {quoted(begin[1])} is not closed by </QApairs>")
    text = None
    candidates = []
    for tag, first in zip(block.lines, block.lines[1:], strict=False):
        kind = tag.text.strip()
        if kind != "<question>" and kind not in TREC_LABELS:
            continue
        if first.text.startswith("<"):
            raise first.at.bad(f"expected tokens behind {kind}")
        sentence = " ".join(first.text.split())
        if kind == "<question>":
            text = sentence
        else:
            candidates.append(Candidate(sentence, TREC_LABELS[kind]))
    if text is None or not candidates:
        lacking = "<question>" if text is None else "candidate (<positive> or <negative>)"
        raise at.bad(f"question {quoted(begin[1])} has no {lacking}")
    return Question(text, tuple(candidates), begin[1])


@QUESTION_READERS.register("wikiqa")
def read_wikiqa(source: Path, options: ReadOptions, report: ReadReport) -> Iterator[Question | BadRowError]:
    """Read one part of a folder, or one file."""
    files = [source]
    if source.is_dir():
        by_part = {part: source / f"WikiQA-{part}.tsv" for part in PARTS}
        there = [part for part, path in by_part.items() if path.exists()]
        files = [by_part[part] for part in chosen_part(options, there, source)]
    for path in files:
        with TextFile(path) as file:
            yield from read_question_table(file, options, WIKIQA_COLUMNS)


def blocks(
    file: TextFile,
    what: str,
    begins: Callable[[str], bool],
    ends: Callable[[str], bool] = lambda text: False,
    stray: str | None = None,
    keep_ends: bool = False,
) -> Iterator[Block | BadRowError]:
    """Yield the blocks of lines of a file, or the error for one that is too long.

    `begins` and `ends` tell the first and the last line of a block. `what` is the noun for a block, and
    `stray` the problem of a line outside blocks; None ignores such lines.
    """
    first: Line | None = None
    lines: list[Line] = []
    size = 0

    def block(closed: bool) -> Block | BadRowError:
        assert first is not None
        if size > MAX_LINE_BYTES:
            return first.at.bad(f"the {what} is longer than {MAX_LINE_BYTES:,} bytes")
        return Block(first, lines, closed)

    for line in file.sound_lines(keep_ends):
        if begins(line.text):
            if first is not None:
                yield block(closed=False)
            first, lines, size = line, [], 0
        elif first is not None:
            size += len(line.text)
            if size <= MAX_LINE_BYTES:
                lines.append(line)
        elif stray and line.text.strip():
            yield line.at.bad(stray)
        if first is not None and ends(line.text):
            yield block(closed=True)
            first = None
    if first is not None:
        yield block(closed=False)
