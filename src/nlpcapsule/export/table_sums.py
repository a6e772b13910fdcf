"""Sum the rows of a convolution's table with scipy. Does not import torch.

    sums_(t,i) = Σ_o T[x_(t+o), i, o]      for each window i; T as `convolution_table` computes it

This is one product of a sparse array, which has a one for each offset of each window of each token, and the
table. It reads rows where they are, and only rows in use are in memory. Rows of 8 bits are added as integers
of 16, or of 32 where a window is wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.lexical.arrays import check_range, is_finite, single_integer
from nlpcapsule.lexical.sparse_rows import unchecked_rows

_WIDEST, _MOST_WINDOWS = 2**10, 2**6  # above what settings allow
_WIDEST_IN_16_BITS = 2**8  # window, whose sums of rows of 8 bits are in 16
_MOST = 2**31  # rows of a table, and rows that a document's sums add: their places are 32-bit integers


@dataclass(frozen=True, eq=False)
class TableSums:
    """The sums of all windows of a document, before the ReLU.

    Attributes:
        table: (V W, filters) float32 or int8, with W the sum of the widths.
        widths: (windows,) of the windows.
        padding_id: The token before and after a text.
    """

    table: np.ndarray
    widths: np.ndarray
    padding_id: int

    def __post_init__(self) -> None:
        widths, table = self.widths, self.table
        is_list = isinstance(widths, np.ndarray) and widths.ndim == 1 and widths.dtype.kind == "i"
        if not is_list or not 0 < len(widths) <= _MOST_WINDOWS:
            raise ModelFolderError(f"widths: expected a list of at most {_MOST_WINDOWS} integers")
        check_range(widths, "widths", 1, _WIDEST)
        shape, total = table.shape, int(widths.sum())
        fits = isinstance(table, np.ndarray) and table.ndim == 2 and 0 < shape[0] < _MOST
        if not fits or shape[0] % total or table.dtype not in (np.float32, np.int8):
            problem = f"table has the shape {shape} of {table.dtype}"
            raise ModelFolderError(f"{problem}: expected {total} rows of float32 or int8 for each word")
        if table.dtype == np.float32 and not is_finite(table):  # the ReLU would hide -inf
            raise ModelFolderError("table holds a number that is infinite or NaN")
        check_range(np.array([self.padding_id]), "padding_id", 0, shape[0] // total - 1)

    @property
    def size(self) -> int:
        """H, the sums of a token."""
        return len(self.widths) * self.table.shape[1]

    @property
    def word_count(self) -> int:
        """V, the words that have rows."""
        return len(self.table) // int(self.widths.sum())

    @cached_property
    def _shifts(self) -> np.ndarray:
        """(W,) how far from a token the word of each offset of each window is."""
        return np.concatenate([np.arange(width) - (width - 1) // 2 for width in self.widths])

    @cached_property
    def _reach(self) -> int:
        """The largest width."""
        return int(self.widths.max())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Create it from the output of `to_arrays`; raise `ModelFolderError` if something does not fit."""
        if set(arrays) != {"table", "widths", "padding_id"}:
            raise ModelFolderError(f"there are {sorted(arrays)}: expected padding_id, table and widths")
        return cls(arrays["table"], arrays["widths"], single_integer(arrays["padding_id"], "padding_id"))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to save."""
        return {"table": self.table, "widths": self.widths, "padding_id": np.array([self.padding_id])}

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Map token ids (l,) to sums (l, H) of float32, int16 or int32."""
        shifts, total, reach = self._shifts, len(self._shifts), self._reach
        words = self.word_count
        # Compiled code checks no index.
        if tokens.min(initial=0) < 0 or tokens.max(initial=0) >= words:
            problem = f"a token is outside the table of the exported network, which has {words:,} words"
            raise ModelFolderError(f"{problem}; export the model again")
        if (len(tokens) + 1) * total >= _MOST:
            raise too_long(tokens)
        edge = np.full(reach, self.padding_id)
        padded = np.concatenate([edge, tokens, edge])  # several times as fast as `np.pad`
        table = self.table
        if table.dtype == np.int8:  # the rows of words in use, as larger integers
            place = np.zeros(words, dtype=np.int32)
            place[padded] = 1
            used = np.flatnonzero(place)
            place[used] = np.arange(len(used), dtype=np.int32)
            padded = place[padded]
            kind = np.int16 if reach <= _WIDEST_IN_16_BITS else np.int32
            table = table.reshape(words, -1)[used].astype(kind).reshape(-1, table.shape[1])
        near = np.arange(reach, reach + len(tokens))[:, None] + shifts  # (l, W) in `padded`
        rows = padded.astype(np.int32)[near] * np.int32(total) + np.arange(total, dtype=np.int32)
        ends = np.arange(len(tokens), dtype=np.int32)[:, None] * total + np.cumsum(self.widths)
        limits = np.append(0, ends).astype(np.int32)  # (l windows + 1,)
        shape = len(limits) - 1, len(table)
        windows = unchecked_rows(np.ones(rows.size, table.dtype), rows.ravel(), limits, shape)
        return (windows @ table).reshape(len(tokens), self.size)


def too_long(tokens: np.ndarray) -> DataError:
    """Return the error for a document whose arrays need larger integers than compiled code takes."""
    problem = f"a document of {len(tokens):,} tokens is too long for an exported network"
    return DataError(problem, hint="rank a shorter part of it")
