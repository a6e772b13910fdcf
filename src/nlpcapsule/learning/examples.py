"""Read documents to learn from, with accepted and rejected labels."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.document_rows import document_from_object, label_list, parse_object
from nlpcapsule.data.readers.lines import STDIN, Line, TextFile
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport, counted, parsed
from nlpcapsule.errors import BadRowError

REJECTED = "rejected"  # JSON key of the rejected labels


@dataclass(frozen=True)
class Example:
    """A document and decisions about its labels.

    Attributes:
        text: The text.
        accepted: Labels that it has.
        rejected: Labels that it was proposed and does not have.
        id: The document's identifier, or None.
    """

    text: str
    accepted: tuple[str, ...]
    rejected: tuple[str, ...] = ()
    id: str | None = None


def read_examples(source: str, options: ReadOptions, report: ReadReport) -> list[Example]:
    """Read documents of any format; JSON Lines may name rejected labels under the key `rejected`.

    Rows with the same identifier are merged by `merge_examples`.

    Args:
        source: The file or folder; "-" is standard input.
        options: How to read it.
        report: Filled while reading.
    """
    suffixes = Path(source.removesuffix(".gz")).suffix
    if options.format == "jsonl" or (
        options.format == "auto" and (source == STDIN or suffixes in (".jsonl", ".json"))
    ):
        rows = list(counted(_json_lines(source, options), source, options, report))
    else:
        found = read_documents(source, options, report)
        rows = [Example(document.text, document.labels, (), document.id) for document in found]
    return merge_examples(rows)


def merge_examples(examples: Iterable[Example]) -> list[Example]:
    """Merge examples with the same identifier: the latest text and the latest decision on a label count.

    Example:
        >>> first = Example("It rains.", ("weather",), (), "a")
        >>> merge_examples([first, Example("It rains.", ("rain",), ("weather",), "a")])
        [Example(text='It rains.', accepted=('rain',), rejected=('weather',), id='a')]
    """
    merged: dict[object, Example] = {}
    for number, example in enumerate(examples):
        key: object = number if example.id is None else example.id
        earlier = merged.get(key, example)
        decided = dict.fromkeys(earlier.accepted, True) | dict.fromkeys(earlier.rejected, False)
        decided |= dict.fromkeys(example.accepted, True) | dict.fromkeys(example.rejected, False)
        merged[key] = Example(
            example.text,
            tuple(label for label, is_accepted in decided.items() if is_accepted),
            tuple(label for label, is_accepted in decided.items() if not is_accepted),
            example.id,
        )
    return list(merged.values())


def _json_lines(source: str, options: ReadOptions) -> Generator[Example | BadRowError]:
    def parse(line: Line) -> Example:
        row = parse_object(line.text, line.at)
        document = document_from_object(row, options, line.at)
        rejected = tuple(dict.fromkeys(label_list(row.get(REJECTED), REJECTED, line.at)))
        both = next((label for label in rejected if label in document.labels), None)
        if both is not None:
            raise line.at.bad(f"the label {both!r:.80} is both accepted and rejected")
        return Example(document.text, document.labels, rejected, document.id)

    with TextFile(source) as file:
        yield from parsed(file.filled_lines(), parse)
