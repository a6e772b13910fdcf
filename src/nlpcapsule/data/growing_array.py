"""An array that grows at its end, and moves from memory to a file when it becomes large."""

from __future__ import annotations

import tempfile
from typing import IO

import numpy as np

MOST_IN_MEMORY = 2**24  # values; more are kept in a temporary file


class GrowingArray:
    """Values of one type, appended part by part.

    The file is in the folder for temporary files (TMPDIR), without a name, so that it ends with the process.
    It is mapped into memory: the system keeps what is read often, and no more than fits.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = dtype
        self._parts: list[np.ndarray] = []
        self._waiting = 0  # values in `_parts`
        self._file: IO[bytes] | None = None

    def append(self, part: np.ndarray) -> None:
        """Append values (any number,)."""
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting > MOST_IN_MEMORY:
            self._write()

    def array(self) -> np.ndarray:
        """Return all values (total,)."""
        if self._file is None:
            return np.concatenate([np.zeros(0, dtype=self._dtype), *self._parts])
        self._write()
        # Changes stay in memory, as with any other array.
        return np.asarray(np.memmap(self._file, dtype=self._dtype, mode="c"))

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="nlpcapsule-")  # noqa: SIM115 - the mapping keeps it
        for part in self._parts:
            self._file.write(np.ascontiguousarray(part, dtype=self._dtype).data)
        self._file.flush()
        self._parts, self._waiting = [], 0
