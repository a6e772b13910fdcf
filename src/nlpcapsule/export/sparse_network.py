"""Score labels with an exported network in parts, which leaves out states that are zero.

After training, a ReLU leaves few states (l, H) of a document above zero. Capsules pool them with m learned
queries Q (H, m):

    P = softmax over l of X Q,     pooled = Pᵀ X     X (l, H)

With X as a sparse matrix the cost of both products is that of its non-zero entries. The result is the same up
to rounding, and no number is quantized. ONNX Runtime, which has no such products, computes what comes before
and after. Does not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export.session import Session
from nlpcapsule.export.table_sums import TableSums, too_long
from nlpcapsule.lexical.arrays import check_range, is_finite
from nlpcapsule.lexical.sparse_rows import unchecked_rows

ENCODER_FILE, CAPSULES_FILE, LABELS_FILE = "encoder.onnx", "capsules.onnx", "labels.onnx"
TABLE_FILE, POOLING_FILE = "table.safetensors", "pooling.safetensors"
PARTS = (TABLE_FILE, ENCODER_FILE, POOLING_FILE, CAPSULES_FILE, LABELS_FILE)
TOKENS, CANDIDATES = "tokens", "candidates"
SUMS, POOLED, CAPSULES, LARGEST, LOGITS = "sums", "pooled", "capsules", "largest", "logits"
_MOST_STATES = 2**31  # of a document, zeros too: their places are 32-bit integers
_IN_CACHE = 64  # rows of means that are transposed together
_SPARSE = 0.1  # share of the states above zero up to which a sparse matrix is faster

Values = dict[str, np.ndarray]  # inputs of a part, by name


@dataclass(frozen=True, eq=False)
class SparseNetwork:
    """The parts of an exported network, and what pools the states between them.

    Attributes:
        encode: Maps token ids (l,) to sums (l, H), such as `TableSums`.
        capsules: Maps pooled states (1, m, H) to condensed capsules (1, m, d).
        labels: Maps capsules, and candidates if it takes them, to logits.
        query: (H, m) float32 Q.
        scale: (H,) float32, what the sums are multiplied by.
    """

    encode: Callable[[np.ndarray], np.ndarray]
    capsules: Session
    labels: Session
    query: np.ndarray
    scale: np.ndarray

    def __post_init__(self) -> None:
        for name, array, dimensions in (("query", self.query, 2), ("scale", self.scale, 1)):
            # Files may hold a sparse matrix by this name.
            if not isinstance(array, np.ndarray) or array.ndim != dimensions or array.dtype != np.float32:
                raise ModelFolderError(f"{name}: expected {dimensions} dimension(s) of float32")
            if not is_finite(array):
                raise ModelFolderError(f"{name} holds a number that is infinite or NaN")
        if len(self.query) != len(self.scale):
            raise ModelFolderError(f"query has {len(self.query)} rows, and scale {len(self.scale)} numbers")
        check_range(self.scale, "scale", 0, np.inf)  # so that max(0, sums) · scale = max(0, sums · scale)
        expected = tuple(self.capsules.shapes[POOLED][:0:-1])
        if self.query.shape != expected:
            raise ModelFolderError(
                f"query has the shape {self.query.shape}: {CAPSULES_FILE} needs {expected}"
            )
        if isinstance(self.encode, TableSums) and self.encode.size != len(self.scale):
            raise ModelFolderError(
                f"the table has {self.encode.size} sums, and scale {len(self.scale)} numbers"
            )

    @classmethod
    def from_arrays(
        cls,
        encode: Callable[[np.ndarray], np.ndarray],
        capsules: Session,
        labels: Session,
        arrays: Mapping[str, Any],
    ) -> Self:
        """Create it from its other parts and saved arrays; raise `ModelFolderError` if one does not fit."""
        if set(arrays) != {"query", "scale"}:
            raise ModelFolderError(f"there are {sorted(arrays)}: expected query and scale")
        return cls(encode, capsules, labels, arrays["query"], arrays["scale"])

    @np.errstate(invalid="ignore", over="ignore")  # NaN and infinity end in scores that are refused
    def read(self, tokens: np.ndarray) -> Values:
        """Return what the last part needs of a document of token ids (l,)."""
        states = self._states(tokens)
        scores = states.product(self.query)  # (l, m)
        scores -= scores.max(axis=0)
        shares = np.exp(scores, out=scores)
        means = states.transposed_product(shares)  # (H, m)
        means /= shares.sum(axis=0)
        pooled = np.empty((1, *means.T.shape), dtype=np.float32)  # (1, m, H)
        for start in range(0, len(means), _IN_CACHE):  # twice as fast as all of it at once
            rows = slice(start, start + _IN_CACHE)
            pooled[0, :, rows] = means[rows].T
        capsules = self.capsules.run(CAPSULES, {POOLED: pooled})
        found = {CAPSULES: capsules, LARGEST: states.largest()[None], TOKENS: tokens.astype(np.int64)[None]}
        return {name: array for name, array in found.items() if name in self.labels.shapes}

    def score(self, read: Values, labels: np.ndarray, label_count: int) -> np.ndarray:
        """Return the logits (C,) of labels (C,), some of n, for a document that was read."""
        return logits_of(labels, label_count, self.labels, read)

    def _states(self, tokens: np.ndarray) -> DenseStates | SparseStates:
        """Return the states of a document."""
        sums = self.encode(tokens)
        # Compiled code multiplies the states, and checks no index.
        if sums.shape != (len(tokens), len(self.scale)) or sums.dtype.kind not in "fi":
            raise ModelFolderError(f"the exported encoder gives {sums.dtype} sums of the shape {sums.shape}")
        if sums.size >= _MOST_STATES:
            raise too_long(tokens)
        return rectified(sums, self.scale)


def logits_of(labels: np.ndarray, label_count: int, session: Session, inputs: Values) -> np.ndarray:
    """Return the logits (C,) of labels (C,) from a graph that takes them, or that scores all n labels."""
    takes_candidates = CANDIDATES in session.shapes
    if takes_candidates:
        inputs = {**inputs, CANDIDATES: labels.astype(np.int64)[None]}
    logits = session.run(LOGITS, inputs)
    if logits.shape != (1, len(labels) if takes_candidates else label_count) or logits.dtype.kind != "f":
        problem = f"{logits.dtype} logits of the shape {logits.shape}"
        raise ModelFolderError(f"the exported network gives {problem}; export the model again")
    if np.isinf(logits).any():  # NaN is refused where labels are ranked
        raise ModelFolderError("the exported network gives infinite logits; export the model again")
    return logits[0] if takes_candidates else logits[0][labels]


def rectified(sums: np.ndarray, scale: np.ndarray) -> DenseStates | SparseStates:
    """Return the states max(0, sums) · scale, from sums (l, H) and a scale (H,)."""
    is_kept = sums <= 0
    np.logical_not(is_kept, out=is_kept)  # NaN is kept, and ends in scores that are refused
    (length, width), kept = sums.shape, is_kept.reshape(-1)
    if np.count_nonzero(kept) > _SPARSE * sums.size:
        return DenseStates(np.maximum(sums, 0).astype(np.float32) * scale)
    places = np.flatnonzero(kept).astype(np.int32)
    rows, columns = np.divmod(places, np.int32(width))
    limits = np.zeros(length + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=length), out=limits[1:])
    values = sums.reshape(-1)[places].astype(np.float32) * scale[columns]
    return SparseStates(unchecked_rows(values, columns, limits, (length, width)))


@dataclass(frozen=True, eq=False)
class DenseStates:
    """The states X (l, H) of a document, many of which are above zero."""

    array: np.ndarray  # (l, H) float32

    def product(self, array: np.ndarray) -> np.ndarray:
        """Return X D (l, m) for an array D (H, m)."""
        return self.array @ array

    def transposed_product(self, array: np.ndarray) -> np.ndarray:
        """Return Xᵀ D (H, m) for an array D (l, m)."""
        return self.array.T @ array

    def largest(self) -> np.ndarray:
        """Return the maximum (H,) over tokens."""
        return self.array.max(axis=0, initial=0)


@dataclass(frozen=True, eq=False)
class SparseStates:
    """The states X (l, H) of a document, few of which are above zero."""

    matrix: sparse.csr_matrix  # (l, H) float32

    def product(self, array: np.ndarray) -> np.ndarray:
        """Return X D (l, m) for an array D (H, m)."""
        return self.matrix @ array

    def transposed_product(self, array: np.ndarray) -> np.ndarray:
        """Return Xᵀ D (H, m) for an array D (l, m)."""
        return self.matrix.T @ array

    def largest(self) -> np.ndarray:
        """Return the maximum (H,) over tokens."""
        found = np.zeros(self.matrix.shape[1], dtype=np.float32)
        np.maximum.at(found, self.matrix.indices, self.matrix.data)
        return found
