"""Rows of different lengths in two flat arrays: compact in memory, fast to save."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nlpcapsule.data.growing_array import GrowingArray

_ROWS_AT_A_TIME = 8_192  # which bounds memory


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
        values = GrowingArray(np.int32)
        for start in range(0, len(self), _ROWS_AT_A_TIME):
            part = self.slice(start, min(start + _ROWS_AT_A_TIME, len(self)))
            place = np.arange(len(part.values)) - np.repeat(part.offsets[:-1], part.lengths)  # in its row
            values.append(part.values[place < length])
        ends = np.cumsum(np.minimum(self.lengths, length), dtype=np.int64)
        return Ragged(values.array(), np.concatenate([np.zeros(1, dtype=np.int64), ends]))

    def padded(self, rows: np.ndarray | Sequence[int], fill: int, width: int | None = None) -> np.ndarray:
        """Return (len(rows), width) int64, padded at the end; width defaults to the longest chosen row."""
        chosen = np.asarray(rows, dtype=np.int64)
        starts, lengths = self.offsets[chosen], self.offsets[chosen + 1] - self.offsets[chosen]  # (B,)
        width = max(width or int(lengths.max(initial=1)), 1)
        is_filled = np.arange(width) < lengths[:, None]  # (B, width)
        block = np.full((len(chosen), width), fill, dtype=np.int64)
        block[is_filled] = self.values[(starts[:, None] + np.arange(width))[is_filled]]
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
