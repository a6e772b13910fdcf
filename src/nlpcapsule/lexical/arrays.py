"""Save and load arrays and sparse matrices in one safetensors file with a checksum.

Large arrays of a model are read-only and mapped into memory, which holds what is in use: `release` gives the
rest back. Those of a checkpoint are copied, as training changes them.
"""

import hashlib
import json
import mmap
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy import sparse

from nlpcapsule.atomic_files import atomic_path
from nlpcapsule.errors import ModelFolderError, first_line

_CHECKSUM = "sha256"  # in a file's metadata: checkpoints have no manifest with checksums
_PARTS = ("data", "indices", "indptr", "shape")
_TYPES = {f"{kind.upper()}{8 * size}": f"<{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)}
_TYPES["BOOL"] = "?"
_LARGE = 2**20  # bytes of an array that is mapped
_AT_A_TIME = 2**22  # bytes that a checksum reads, and numbers that are checked, at once


def save_arrays(path: Path, **arrays: np.ndarray | sparse.csr_matrix) -> None:
    """Write arrays by name; a sparse matrix takes four of them."""
    flat: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if sparse.issparse(array):
            rows = sparse.csr_matrix(array)
            values = (rows.data, rows.indices, rows.indptr, np.array(rows.shape))
            flat |= {f"{name}.{part}": value for part, value in zip(_PARTS, values, strict=True)}
        else:
            flat[name] = np.asarray(array, order="C")
    with atomic_path(path) as temporary:
        save_file(flat, temporary, metadata={_CHECKSUM: _checksum(flat)})


def load_arrays(path: Path, needs_checksum: bool = False) -> dict[str, np.ndarray | sparse.csr_matrix]:
    """Read a file of `save_arrays`; every sparse matrix is safe to compute with.

    The manifest has the checksums of a model folder's files. A damaged file is a ModelFolderError.
    """
    try:
        with safe_open(path, framework="numpy") as file:  # checks the header
            metadata = file.metadata() or {}
        flat = _mapped(path)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFolderError(f"{path} is damaged: {first_line(error)}") from None
    if needs_checksum:
        if _checksum(flat) != metadata.get(_CHECKSUM):
            raise ModelFolderError(f"{path} is damaged: its numbers are not those that were written")
        flat = {name: array.copy() for name, array in flat.items()}
    arrays: dict[str, np.ndarray | sparse.csr_matrix] = {}
    for name in flat:
        stem, _, part = name.rpartition(".")
        if f"{stem}.indptr" not in flat:
            arrays[name] = flat[name]
        elif part == "data":
            arrays[stem] = _checked_matrix(stem, flat, path)
            release(arrays[stem])
    return arrays


class _ReadOnly(np.memmap):
    """A file that is mapped into memory and cannot be changed there, so that nothing is lost by `release`."""


def _mapped(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file, which numpy reads nothing outside of."""
    with path.open("rb") as file:
        start, header = _header(file)
        content: Any = _ReadOnly(file, np.uint8, mode="r")
        opened = os.dup(file.fileno())  # joblib's workers map this file, although another may replace it
    weakref.finalize(content, os.close, opened)
    place = Path(f"/proc/{os.getpid()}/fd/{opened}")
    content.filename = place if place.exists() else path  # elsewhere they map what has this name by then
    flat = {}
    for name, entry in header.items():
        kind = _TYPES[entry["dtype"]]
        array: np.ndarray = np.ndarray(entry["shape"], kind, content, start + entry["data_offsets"][0])
        is_mapped = array.nbytes >= _LARGE and array.flags.aligned  # as compiled code may need it
        flat[name] = array if is_mapped else array.copy()
    return flat


def array_places(path: Path) -> dict[str, int]:
    """Return where each array of a file of `save_arrays` begins, in bytes."""
    with path.open("rb") as file:
        start, header = _header(file)
    return {name: start + entry["data_offsets"][0] for name, entry in header.items()}


def _header(file: BinaryIO) -> tuple[int, dict[str, Any]]:
    """Return where the arrays of a safetensors file begin, and its entries by name."""
    size = int.from_bytes(file.read(8), "little")
    entries = json.loads(file.read(size))
    entries.pop("__metadata__", None)
    return 8 + size, entries


def release(array: np.ndarray | sparse.csr_matrix) -> None:
    """Give back the memory of the file that an array is mapped from, if it is; reading maps it again."""
    owner: Any = array.data if sparse.issparse(array) else array
    while isinstance(owner, np.ndarray) and not isinstance(owner, _ReadOnly):
        owner = owner.base
    if isinstance(owner, _ReadOnly) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        owner._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _checked_matrix(stem: str, flat: Mapping[str, np.ndarray], path: Path) -> sparse.csr_matrix:
    """Return a sparse matrix whose indices are all in range: compiled code does not check them."""
    try:
        data, indices, indptr, shape = (flat[f"{stem}.{part}"] for part in _PARTS)
        rows, columns = map(int, shape)
        if indices.dtype.kind != "i" or indptr.dtype.kind != "i" or data.dtype.kind != "f":
            raise ValueError(f"indices are {indices.dtype} and {indptr.dtype}, numbers {data.dtype}")
        if not len(indptr) == rows + 1 or columns < 0:  # before allocating a matrix of that size
            raise ValueError(f"{len(indptr)} row limits for {rows} rows")
        matrix = sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
        if not is_finite(matrix.data):
            raise ValueError("a number is infinite or NaN")
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        problem = first_line(error)
        raise ModelFolderError(f"{path} is damaged: {stem} is no sparse matrix: {problem}") from None
    return matrix


def check_array(
    array: np.ndarray | sparse.csr_matrix | None, name: str, shape: tuple[int, ...], kinds: str = "f"
) -> None:
    """Raise `ModelFolderError` if an array does not fit the rest of the model, or a value is not finite.

    The shape is the one that follows from tokenizer and labels, and `kinds` are numpy's codes of the allowed
    types: f floats, i and u integers, b booleans. A missing array is None.
    """
    if array is None:
        raise ModelFolderError(f"{name} is missing")
    if array.shape != shape:
        raise ModelFolderError(
            f"{name} has the shape {array.shape}, and tokenizer and labels ask for {shape}"
        )
    if array.dtype.kind not in kinds:
        raise ModelFolderError(f"{name} is made of {array.dtype}")
    values: Any = array.data if sparse.issparse(array) else array
    if array.dtype.kind == "f" and not is_finite(values):
        raise ModelFolderError(f"{name} holds a number that is infinite or NaN")
    release(array)


def is_finite(array: np.ndarray) -> bool:
    """Return whether no number is infinite or NaN; a mapped array is read part by part."""
    flat = array.reshape(-1)
    for start in range(0, len(flat), _AT_A_TIME):
        part = flat[start : start + _AT_A_TIME]
        if not np.isfinite([part.min(), part.max()]).all():  # both are NaN if a number is
            return False
        release(array)
    return True


def check_range(array: np.ndarray, name: str, lowest: float, highest: float) -> None:
    """Reject an array with a value below `lowest` or above `highest`."""
    if len(array) and not (array.min() >= lowest and array.max() <= highest):
        raise ModelFolderError(f"{name} holds a number that is not between {lowest} and {highest}")


def single_integer(array: np.ndarray | None, name: str) -> int:
    """Return the single integer that an array holds; raise `ModelFolderError` if it holds anything else."""
    if array is None or array.shape != (1,) or array.dtype.kind not in "iu":
        raise ModelFolderError(f"{name} is missing, or it is not one integer")
    return int(array[0])


def text_to_array(text: str) -> np.ndarray:
    """Return a text as bytes, to be saved with arrays."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def array_to_text(array: np.ndarray, name: str) -> str:
    """Return the text of `text_to_array`; raise `ModelFolderError` if it is none."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ModelFolderError(f"{name} is no text")
    try:
        return array.tobytes().decode()
    except UnicodeDecodeError:
        raise ModelFolderError(f"{name} is no UTF-8 text") from None


def _checksum(flat: Mapping[str, np.ndarray]) -> str:
    """Return the checksum of all values, names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(flat):
        array = np.ascontiguousarray(flat[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        content = array.reshape(-1).view(np.uint8)
        for start in range(0, len(content), _AT_A_TIME):
            digest.update(content[start : start + _AT_A_TIME].data)
            release(array)
    return digest.hexdigest()
