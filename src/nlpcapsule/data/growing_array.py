"""An array that grows at its end, and moves from memory to a file when it becomes large."""

import os
import tempfile
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from typing import IO, Any

import numpy as np

MOST_IN_MEMORY = 2**22  # values; more are kept in a temporary file


class GrowingArray:
    """Values of one type, appended part by part.

    The file is in the folder for temporary files (TMPDIR), without a name, so that it ends with the process.
    It is mapped into memory: the system keeps what is read often, and no more than fits.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = np.dtype(dtype)
        self._latest = bytearray()  # the values that are not in the file
        self._file: IO[bytes] | None = None

    def append(self, part: np.ndarray) -> None:
        """Append values (any number,)."""
        self._latest += part.astype(self._dtype, copy=False).tobytes()
        if len(self._latest) > MOST_IN_MEMORY * self._dtype.itemsize:
            self._write()

    def array(self) -> np.ndarray:
        """Return all values (total,)."""
        if self._file is None:
            return np.frombuffer(self._latest, self._dtype).copy()
        self._write()
        # Changes stay in memory, as with any other array.
        place = Path(f"/proc/{os.getpid()}/fd/{self._file.fileno()}")
        if not place.exists():  # worker processes get a copy
            return np.frombuffer(mmap(self._file.fileno(), 0, access=ACCESS_COPY), self._dtype)
        mapped: Any = np.memmap(self._file, dtype=self._dtype, mode="c")
        # Joblib's workers map the same file. It is open as long as the array is in use.
        mapped.filename, mapped.file = place, self._file
        return np.asarray(mapped)

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="nlpcapsule-")  # noqa: SIM115 - the mapping keeps it
        self._file.write(self._latest)
        self._file.flush()
        self._latest.clear()
