"""Options and report that all readers share, and the handling of bad rows."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from nlpcapsule.errors import BadRowError, ConfigError, DataError

Row = TypeVar("Row")
Item = TypeVar("Item")

EXAMPLES_KEPT = 5
ALL_PARTS = "all"
GUESSED = ("csv", "tsv", "labels-tab-text", "txt")  # formats guessed by a first line that may be ambiguous
LONGEST_NUMBER = 18  # maximum digits of a document or label number


@dataclass
class ReadOptions:
    """Options of reading a file."""

    format: str = "auto"  # a format's name; auto detects it by the file's suffix, folder or first line
    text_key: str = "text"  # the key or column of the text
    labels_key: str = "labels"  # of the labels
    id_key: str = "id"  # of the identifier; rows may lack it
    title_key: str = "title"  # of the title; rows may lack it
    label_separator: str | None = None  # between labels inside one cell; None means ";"
    split: str | None = None  # the part to read of a layout that holds several: train, dev, test or all
    skip_bad_rows: bool = False  # count bad rows and continue, instead of raising an error at the first one
    need_labels: bool = True  # False reads only texts (for prediction) and ignores labels

    @property
    def separator(self) -> str:
        """The separator of labels inside one cell."""
        if self.label_separator == "":
            raise ConfigError("--label-separator must not be empty; leave it out for the usual ';'")
        return self.label_separator or ";"


@dataclass
class ReadReport:
    """Counts of what was read; filled while reading, complete when the reader is exhausted."""

    rows: int = 0  # documents or questions read
    unlabelled: int = 0  # rows without labels, if labels are needed
    bad_rows: int = 0  # rows skipped because they were unusable
    examples: list[str] = field(default_factory=list)  # messages of the first few bad rows
    say: Callable[[str], None] = lambda text: None  # receives what to print at once: which format was guessed

    def tell_guess(self, path: str, format: str) -> None:
        """Report the format that was guessed by the first line, if the guess is ambiguous."""
        if format in GUESSED and suffix_of(path) != f".{format}":
            self.say(f"{path}: read as {format}, by its first line; --format names another format")

    def add_bad_row(self, problem: BadRowError) -> None:
        """Count one skipped row."""
        self.bad_rows += 1
        if len(self.examples) < EXAMPLES_KEPT:
            # The same error without its hint, which would be repeated in each example.
            self.examples.append(str(DataError(problem.problem, problem.path, problem.line)))

    def summary(self) -> str:
        """Return the report as text: one line, and one more for each example of a bad row.

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


class Place(NamedTuple):
    """Where a row is: a file and a line; the line is None if the row is a whole file."""

    path: str | Path
    line: int | None = None

    def bad(self, problem: str, hint: str | None = None) -> BadRowError:
        """Return the error for one unusable row, with the hint to skip it."""
        skip = "skip and count such rows with --skip-bad-rows"
        return BadRowError(problem, self.path, self.line, f"{hint}, or {skip}" if hint else skip)

    def broken(self, problem: str, hint: str | None = None) -> DataError:
        """Return the error for a problem that ends the reading."""
        return DataError(problem, self.path, self.line, hint)


def whole_number(text: str) -> int | None:
    """Return the number that ASCII digits spell; None for other characters or too many digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


def suffix_of(name: str) -> str:
    """Return the suffix of a file name in lower case, without ".gz"."""
    return Path(name.removesuffix(".gz")).suffix.lower()


def parsed(rows: Iterable[Row | BadRowError], parse: Callable[[Row], Item]) -> Iterator[Item | BadRowError]:
    """Parse each row; the error of a bad row takes its place.

    Sources yield errors instead of raising them: a generator that has raised is exhausted, and the rows after
    the bad one would be lost silently.
    """
    for row in rows:
        try:
            item = row if isinstance(row, BadRowError) else parse(row)
        except BadRowError as problem:
            item = problem
        yield item


def counted(
    items: Generator[Item | BadRowError], source: str | Path, options: ReadOptions, report: ReadReport
) -> Iterator[Item]:
    """Yield and count the items of a source; raise its first error, or count it if bad rows are skipped.

    A source without an item is a DataError.
    """
    rows, bad_rows, examples = 0, report.bad_rows, len(report.examples)
    with closing(items):
        for item in items:
            if isinstance(item, BadRowError):
                if not options.skip_bad_rows:
                    raise item
                report.add_bad_row(item)
                continue
            rows += 1
            report.rows += 1
            report.unlabelled += options.need_labels and not getattr(item, "labels", True)
            yield item
    if rows:
        return
    source = "<stdin>" if str(source) == "-" else source
    if bad_rows := report.bad_rows - bad_rows:
        first = "".join(f"; the first: {example}" for example in report.examples[examples : examples + 1])
        raise DataError(f"every row is bad ({bad_rows:,} skipped), so there is nothing to use{first}", source)
    raise DataError("it is empty: there are no rows", source, hint="check that this is the right file")


def chosen_part(options: ReadOptions, parts: list[str], source: str | Path) -> list[str]:
    """Return the parts of a layout to read: the one that `options.split` names, or "all" of them.

    A layout with several parts is only read as a whole on request, since test documents would end up in
    training.
    """
    if options.split in parts:
        return [options.split]
    if options.split == ALL_PARTS or (options.split is None and len(parts) == 1):
        return parts
    choices = ", ".join([*parts, ALL_PARTS])
    if options.split is not None:
        raise DataError(f"there is no part {options.split!r}", source, hint=f"--split can be: {choices}")
    holds = f"it holds several parts ({', '.join(parts)})"
    raise DataError(holds, source, hint=f"choose with --split: {choices}")
