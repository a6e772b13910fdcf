"""Read text files line by line: plain or gzipped, from disk or standard input, in bounded memory."""

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Self, cast

from nlpcapsule.data.readers.reading import Place
from nlpcapsule.errors import BadRowError, DataError

MAX_LINE_BYTES = 10_000_000
MAX_SKIPPED_BYTES = 1_000_000_000  # maximum length of an overlong line that is skipped
STDIN = "-"
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """A line and its place: the name of its file and its number, counted from 1."""

    at: Place
    text: str


def is_stream(source: str | Path) -> bool:
    """Return whether a source is standard input, a pipe or a device, which can only be read once."""
    if str(source) == STDIN:
        return True
    try:
        mode = Path(source).stat().st_mode
    except (OSError, ValueError):  # opening it raises a better error
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


class TextFile:
    """An open text file, or standard input ("-"); use it in a `with` statement.

    `encoding` is "latin-1" for published files that are older than UTF-8; `errors="replace"` tolerates bytes
    that are invalid in the encoding.
    """

    def __init__(self, source: str | Path, encoding: str = "utf-8", errors: str = "strict") -> None:
        self.from_stdin = str(source) == STDIN
        self.name = "<stdin>" if self.from_stdin else str(source)  # in messages
        self.encoding, self.errors = encoding, errors
        self._bytes = self._open(source)
        self._stream = self._unzip()
        self._first: bytes | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.from_stdin or self._bytes is not sys.stdin.buffer:
            self._stream.close()
            self._bytes.close()

    @property
    def empty(self) -> bool:
        """Whether the file is empty."""
        return not self._peek_raw()

    def peek(self) -> str:
        """Return the first line without its end ("" if there is none); `lines` still yields it afterwards."""
        return self._peek_raw().decode(self.encoding, errors="replace").rstrip("\r\n")

    def lines(self, keep_ends: bool = False) -> Iterator[Line | BadRowError]:
        """Yield the lines in order; a line that is too long or wrongly encoded is replaced by its error."""
        raw = self._peek_raw()
        self._first = None
        number = 0
        while raw:
            number += 1
            yield self._line(number, raw, keep_ends)
            raw = self._read(MAX_LINE_BYTES + 1)

    def filled_lines(self, delimiter: str | None = None) -> Iterator[Line | BadRowError]:
        """Yield the lines that are not blank: a blank one, often the last, is not a row.

        A line that holds the delimiter is a row, even if its cells are blank.
        """
        for line in self.lines():
            if isinstance(line, BadRowError) or line.text.strip() or (delimiter and delimiter in line.text):
                yield line

    def sound_lines(self, keep_ends: bool = False) -> Iterator[Line]:
        """Yield the lines in order; an unusable line ends the reading.

        For formats in which a row spans lines: without one line, the end of the row is unknown.
        """
        for line in self.lines(keep_ends):
            if isinstance(line, BadRowError):
                way = (line.hint or "").rpartition(", or ")[0]  # the last hint would be to skip the row
                raise DataError(line.problem, line.path, line.line, way or "fix the line")
            yield line

    def _open(self, source: str | Path) -> io.BufferedReader:
        try:
            raw = _standard_input() if self.from_stdin else io.FileIO(source)
        except FileNotFoundError:
            raise DataError("there is no such file", self.name, hint="check the path") from None
        except IsADirectoryError:
            raise DataError("this is a folder, expected a file", self.name) from None
        except (OSError, ValueError) as error:  # a path with a NUL character raises the latter
            reason = error.strerror if isinstance(error, OSError) else error
            raise DataError(f"it cannot be opened ({reason})", self.name) from error
        return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))

    def _unzip(self) -> io.BufferedReader:
        # The first bytes identify gzip more reliably than the name, and standard input has no name.
        try:
            start = self._bytes.peek(2)[:2]
        except OSError as error:
            raise DataError(f"it cannot be read ({error.strerror})", self.name) from error
        if start == GZIP_MAGIC:
            unzipped = cast(io.RawIOBase, gzip.GzipFile(fileobj=self._bytes))
            return io.BufferedReader(unzipped, buffer_size=1 << 16)
        if start and self.name.endswith(".gz"):
            self._bytes.close()
            raise DataError("it is named .gz but is no gzip file", self.name, hint="rename or fetch it again")
        return self._bytes

    def _line(self, number: int, raw: bytes, keep_ends: bool) -> Line | BadRowError:
        at = Place(self.name, number)
        is_cut = len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n")
        # Do not search a binary file for the end of the line: /dev/zero has none.
        if (is_cut or len(raw) > MAX_LINE_BYTES + 1) and b"\0" not in raw:
            if is_cut:
                self._finish_line(at)
            return at.bad(f"the line is longer than {MAX_LINE_BYTES:,} bytes", "split it")
        try:
            text = decode(raw, at, self.encoding, self.errors)
        except BadRowError as problem:
            return problem
        return Line(at, text if keep_ends else text.removesuffix("\n").removesuffix("\r"))

    def _peek_raw(self) -> bytes:
        if self._first is None:
            start = self._checked(lambda: self._stream.peek(1))  # the first block, or what a pipe has so far
            if not start.startswith(UTF16_MARKS):  # UTF-16 has its own message
                refuse_binary(start, Place(self.name, 1))  # or the first line may look like a row
            # The byte order mark does not count towards the length: it does not change where a line is cut.
            start = self._read(MAX_LINE_BYTES + 1 + len(BYTE_ORDER_MARK))
            self._first = start.removeprefix(BYTE_ORDER_MARK)
        return self._first

    def _finish_line(self, at: Place) -> None:
        """Read and discard the rest of a line that is too long, piece by piece."""
        skipped = 0
        while (piece := self._read(1 << 16)) and not piece.endswith(b"\n"):
            skipped += len(piece)
            if skipped > MAX_SKIPPED_BYTES:
                raise at.broken("the line does not end, expected lines of text")

    def _read(self, limit: int) -> bytes:
        return self._checked(lambda: self._stream.readline(limit))

    def _checked(self, read: Callable[[], bytes]) -> bytes:
        """Return what is read; a failure is a DataError."""
        try:
            return read()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            hint = "fetch or compress it again"
            raise DataError(f"the gzip file is broken ({error})", self.name, hint=hint) from error
        except OSError as error:
            raise DataError(f"it cannot be read ({error.strerror})", self.name) from error


def _standard_input() -> io.IOBase:
    """Return standard input's bytes, under a separate file descriptor.

    Python cannot exit while another thread waits for a line of `sys.stdin`.
    """
    try:
        return io.FileIO(os.dup(sys.stdin.fileno()))
    except (OSError, ValueError):  # not a file, as in a test or a notebook
        return cast(io.IOBase, sys.stdin.buffer)


def decode(raw: bytes, at: Place, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Decode one line, or one small file that begins in `at`.

    A byte that is invalid in the encoding is a `BadRowError`; a binary or UTF-16 file is a DataError.
    """
    first = at.line or 1
    if first == 1 and raw.startswith(UTF16_MARKS):
        hint = "convert it, for example with: iconv -f utf-16 -t utf-8"
        raise DataError("it is encoded as UTF-16, expected UTF-8", at.path, hint=hint)
    refuse_binary(raw, Place(at.path, first))
    try:
        return raw.decode(encoding, errors)
    except UnicodeDecodeError as error:
        at = Place(at.path, first + raw.count(b"\n", 0, error.start))
        hint = "convert the file, for example with: iconv -f latin1 -t utf-8"
        raise at.bad(f"byte 0x{raw[error.start]:02x} is not valid UTF-8", hint) from None


def refuse_binary(raw: bytes, at: Place) -> None:
    """Raise a DataError if bytes that begin in `at` hold a NUL byte, as text does not."""
    if (nul := raw.find(b"\0")) >= 0:
        at = Place(at.path, (at.line or 1) + raw.count(b"\n", 0, nul))
        raise at.broken("it holds a NUL byte and seems to be a binary file, expected text")
