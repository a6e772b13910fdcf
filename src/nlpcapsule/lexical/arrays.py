"""Arrays and sparse matrices as one safetensors file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy import sparse

from nlpcapsule.atomic_files import atomic_path


def save_arrays(path: Path, **arrays: np.ndarray | sparse.csr_matrix) -> None:
    """Writes arrays by name; a sparse matrix takes four of them."""
    flat: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if sparse.issparse(array):
            rows = sparse.csr_matrix(array)
            flat[f"{name}.data"], flat[f"{name}.indices"] = rows.data, rows.indices
            flat[f"{name}.indptr"], flat[f"{name}.shape"] = rows.indptr, np.array(rows.shape)
        else:
            flat[name] = np.ascontiguousarray(array)
    with atomic_path(path) as temporary:
        save_file(flat, temporary)


def load_arrays(path: Path) -> dict[str, np.ndarray | sparse.csr_matrix]:
    """Reads what `save_arrays` wrote."""
    flat = load_file(path)
    arrays: dict[str, np.ndarray | sparse.csr_matrix] = {}
    for name in flat:
        stem, _, part = name.rpartition(".")
        if f"{stem}.indptr" not in flat:
            arrays[name] = flat[name]
        elif part == "data":
            parts = (flat[f"{stem}.data"], flat[f"{stem}.indices"], flat[f"{stem}.indptr"])
            arrays[stem] = sparse.csr_matrix(parts, shape=tuple(flat[f"{stem}.shape"]))
    return arrays
