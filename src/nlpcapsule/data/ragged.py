"""Rows of different lengths in two flat arrays: compact in memory, fast to save."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nlpcapsule.data.growing_array import GrowingArray


class Ragged:
    """Integer rows of different lengths."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self.values = values  # (total,) int32, all rows, concatenated
        self.offsets = offsets  # (rows + 1,) int64, where each row begins

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[int] | np.ndarray]) -> Ragged:
        """Pack rows; many values are kept in a file that is mapped into memory."""
        growing = GrowingRows()
        for row in rows:
            growing.append(row)
        return growing.ragged()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> np.ndarray:
        """(rows,) int64."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray | Sequence[int]) -> Ragged:
        """Return the chosen rows, in the given order."""
        return Ragged.from_rows(self[int(row)] for row in rows)

    def slice(self, start: int, end: int) -> Ragged:
        """Return the rows from `start` to `end`, without copying their values."""
        offsets = self.offsets[start : end + 1]
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    def cut(self, length: int) -> Ragged:
        """Truncate every row to its first `length` values."""
        return Ragged.from_rows(row[:length] for row in self)

    def padded(self, rows: np.ndarray | Sequence[int], fill: int, width: int | None = None) -> np.ndarray:
        """Return (len(rows), width) int64, padded at the end; width defaults to the longest chosen row."""
        chosen = [self[int(row)] for row in rows]
        width = width or max((len(row) for row in chosen), default=1)
        block = np.full((len(chosen), max(width, 1)), fill, dtype=np.int64)
        for target, row in zip(block, chosen, strict=True):
            target[: min(len(row), width)] = row[:width]
        return block


class GrowingRows:
    """Rows of integers, appended one by one."""

    def __init__(self) -> None:
        self._values, self._lengths = GrowingArray(np.int32), array("q", [0])

    def append(self, row: Sequence[int] | np.ndarray) -> None:
        """Append a row."""
        packed = np.asarray(row, dtype=np.int32)
        self._values.append(packed)
        self._lengths.append(len(packed))

    def ragged(self) -> Ragged:
        """Return all rows."""
        return Ragged(self._values.array(), np.cumsum(self._lengths, dtype=np.int64))
