"""An array that grows at its end, and moves from memory to a file when it becomes large."""

import os
import tempfile
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from typing import IO, Any

import numpy as np

MOST_IN_MEMORY = 2**22  # values; more are kept in a temporary file
_PARTS = 1_024  # that are joined


class GrowingArray:
    """Values of one type, appended part by part.

    The file is in the folder for temporary files (TMPDIR), without a name, so that it ends with the process.
    It is mapped into memory: the system keeps what is read often, and no more than fits.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = dtype
        self._parts: list[np.ndarray] = []  # the latest
        self._blocks: list[np.ndarray] = []  # of many parts each: a small array takes more than its values
        self._waiting = 0  # values in `_blocks`
        self._file: IO[bytes] | None = None

    def append(self, part: np.ndarray) -> None:
        """Append values (any number,)."""
        self._parts.append(part)
        if len(self._parts) >= _PARTS or len(part) > _PARTS:
            self._join()

    def array(self) -> np.ndarray:
        """Return all values (total,)."""
        self._join()
        if self._file is None:
            return np.concatenate([np.zeros(0, dtype=self._dtype), *self._blocks])
        self._write()
        assert self._file is not None
        # Changes stay in memory, as with any other array.
        place = Path(f"/proc/{os.getpid()}/fd/{self._file.fileno()}")
        if not place.exists():  # worker processes get a copy
            return np.frombuffer(mmap(self._file.fileno(), 0, access=ACCESS_COPY), self._dtype)
        mapped: Any = np.memmap(self._file, dtype=self._dtype, mode="c")
        # Joblib's workers map the same file. It is open as long as the array is in use.
        mapped.filename, mapped.file = place, self._file
        return np.asarray(mapped)

    def _join(self) -> None:
        if self._parts:
            self._blocks.append(np.concatenate(self._parts, dtype=self._dtype, casting="unsafe"))
            self._waiting += len(self._blocks[-1])
            self._parts = []
        if self._waiting > MOST_IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="nlpcapsule-")  # noqa: SIM115 - the mapping keeps it
        for block in self._blocks:
            self._file.write(block.data)
        self._file.flush()
        self._blocks, self._waiting = [], 0
