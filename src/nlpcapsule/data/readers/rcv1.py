"""RCV1-v2 as distributed by Lewis et al. (2004): files of tokens, and one file that gives the topics."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_rows import make_document
from nlpcapsule.data.readers.lines import Block, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, chosen_part, parsed, whole_number
from nlpcapsule.errors import BadRowError, DataError, quoted

TOKEN_FILES = "lyrl2004_tokens_*.dat*"
TOPIC_FILES = ("rcv1-v2.topics.qrels", "rcv1-v2.topics.qrels.gz")


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
            yield from parsed(file.blocks("story", lambda text: text.startswith(".I"), stray=stray), parse)


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
        fields = line.text.split()
        if not fields:
            continue
        story = whole_number(fields[1]) if len(fields) == 3 else None
        if story is None:
            raise line.at.broken(f"expected 'TOPIC story 1', found {quoted(line.text)}")
        yield story, fields[0]
