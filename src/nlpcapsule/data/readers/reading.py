"""What all readers share: their options, their report, and what happens to a bad row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from nlpcapsule.errors import BadRowError, ConfigError, DataError

Row = TypeVar("Row")
Item = TypeVar("Item")

EXAMPLES_KEPT = 5
ALL_PARTS = "all"
GUESSED = ("csv", "tsv", "labels-tab-text", "txt")  # by a first line that may mean something else
LONGEST_NUMBER = 18  # digits: beyond, no number of a document or a label is meant


@dataclass
class ReadOptions:
    """How a file is to be read.

    Attributes:
        format: A format's name, or "auto" to tell it by the file's suffix, folder or first line.
        text_key: The key or column of the text.
        labels_key: The key or column of the labels.
        id_key: The key or column of the identifier; rows may lack it.
        title_key: The key or column of the title; rows may lack it.
        label_separator: What separates labels inside one cell; None means ";".
        split: The part to read of a layout that holds several ("train", "dev", "test" or "all").
        skip_bad_rows: Count bad rows and go on, where otherwise the first one is an error.
        need_labels: False reads texts alone (to predict): labels that are there are not looked at.
    """

    format: str = "auto"
    text_key: str = "text"
    labels_key: str = "labels"
    id_key: str = "id"
    title_key: str = "title"
    label_separator: str | None = None
    split: str | None = None
    skip_bad_rows: bool = False
    need_labels: bool = True

    @property
    def separator(self) -> str:
        """The separator of labels inside one cell."""
        if self.label_separator is None:
            return ";"
        if not self.label_separator:
            raise ConfigError("--label-separator must not be empty; leave it out for the usual ';'")
        return self.label_separator


@dataclass
class ReadReport:
    """What was read; filled while reading, complete when the reader is exhausted.

    Attributes:
        rows: Documents or questions read.
        unlabelled: Those among them without labels, where labels are needed.
        bad_rows: Rows skipped because they were unusable.
        examples: The first few bad rows, in words.
        say: Receives what is to be said at once: which format was guessed.
    """

    rows: int = 0
    unlabelled: int = 0
    bad_rows: int = 0
    examples: list[str] = field(default_factory=list)
    say: Callable[[str], None] = lambda text: None

    def tell_guess(self, path: str, format: str) -> None:
        """Says which format was guessed by the first line, where another guess would give other rows."""
        suffix = Path(path.removesuffix(".gz")).suffix.lower()
        if format in GUESSED and suffix != f".{format}":
            self.say(f"{path}: read as {format}, by its first line; --format names another format")

    def add_bad_row(self, problem: BadRowError) -> None:
        """Counts one skipped row."""
        self.bad_rows += 1
        if len(self.examples) < EXAMPLES_KEPT:
            # The same error without its hint, which would repeat in each example.
            self.examples.append(str(DataError(problem.problem, problem.path, problem.line)))

    def summary(self) -> str:
        """The report in words: one line, and one more for each example of a bad row.

        Example:
            >>> ReadReport(rows=1200, unlabelled=3).summary()
            '1,200 rows read, 3 of them without labels'
        """
        text = f"{self.rows:,} {'row' if self.rows == 1 else 'rows'} read"
        if self.unlabelled:
            text += f", {self.unlabelled:,} of them without labels"
        if self.bad_rows:
            text += f"; {self.bad_rows:,} bad {'row' if self.bad_rows == 1 else 'rows'} skipped"
        lines = [text, *(f"  {example}" for example in self.examples)]
        if self.bad_rows > len(self.examples):
            lines.append(f"  and {self.bad_rows - len(self.examples):,} more")
        return "\n".join(lines)


def whole_number(text: str) -> int | None:
    """The number that ASCII digits spell, or None if they do not, or too many do."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


def bad_row(
    problem: str, path: str | Path | None, line: int | None = None, hint: str | None = None
) -> BadRowError:
    """The error for one unusable row, with the way to get past it."""
    skip = "skip and count such rows with --skip-bad-rows"
    return BadRowError(problem, path, line, f"{hint}, or {skip}" if hint else skip)


def good_rows(
    rows: Iterator[Row | BadRowError],
    parse: Callable[[Row], Item],
    options: ReadOptions,
    report: ReadReport,
) -> Iterator[Item]:
    """Parses each row; raises at the first bad one, or counts it if bad rows are to be skipped.

    Sources yield their problems rather than raise them: a generator that has raised is over, and the rows
    behind the bad one would be lost without a word.

    Args:
        rows: Raw rows, or the problem in a row's place.
        parse: Turns a raw row into an item; may raise `BadRowError`.
        options: Says whether bad rows are skipped.
        report: Counts them.

    Yields:
        The items of the good rows.
    """
    for row in rows:
        try:
            if isinstance(row, BadRowError):
                raise row
            item = parse(row)
        except BadRowError as problem:
            if not options.skip_bad_rows:
                raise
            report.add_bad_row(problem)
            continue
        yield item


def refuse_nothing_read(source: str | Path, rows: int, bad_rows: int, examples: list[str]) -> None:
    """Raises `DataError` if a source gave no item at all."""
    if rows:
        return
    source = "<stdin>" if str(source) == "-" else source
    if bad_rows:
        first = f"; the first: {examples[0]}" if examples else ""
        raise DataError(f"every row is bad ({bad_rows:,} skipped), so there is nothing to use{first}", source)
    raise DataError("it is empty: there are no rows", source, hint="check that this is the right file")


def chosen_part(options: ReadOptions, parts: list[str], source: str | Path) -> list[str]:
    """The parts of a layout to read.

    A layout with several parts is never read whole unasked: its test documents would end up in training.

    Args:
        options: Whose `split` names one of the parts, or "all".
        parts: The parts there are.
        source: For the error.

    Returns:
        The parts to read, in order.
    """
    if options.split == ALL_PARTS:
        return parts
    if options.split in parts:
        return [options.split]
    choices = ", ".join([*parts, ALL_PARTS])
    if options.split is not None:
        raise DataError(f"there is no part {options.split!r}", source, hint=f"--split can be: {choices}")
    if len(parts) == 1:
        return parts
    raise DataError(
        f"it holds several parts ({', '.join(parts)})", source, hint=f"choose with --split: {choices}"
    )
