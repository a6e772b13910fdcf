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

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export.table_sums import TableSums
from nlpcapsule.lexical.sparse_rows import product_of_rows, product_of_transposed

ENCODER_FILE, CAPSULES_FILE, LABELS_FILE = "encoder.onnx", "capsules.onnx", "labels.onnx"
TABLE_FILE, POOLING_FILE = "table.safetensors", "pooling.safetensors"
PARTS = (TABLE_FILE, ENCODER_FILE, POOLING_FILE, CAPSULES_FILE, LABELS_FILE)
TOKENS, CANDIDATES = "tokens", "candidates"
SUMS, POOLED, CAPSULES, LARGEST, LOGITS = "sums", "pooled", "capsules", "largest", "logits"
_MOST_STATES = 2**31  # of a document, zeros too: their places are 32-bit integers
_SPARSE = 0.1  # share of the states above zero up to which a sparse matrix is faster

Values = dict[str, np.ndarray]  # inputs of a part, by name


@dataclass(frozen=True, eq=False)
class SparseNetwork:
    """The parts of an exported network, and what pools the states between them.

    Attributes:
        encode: Maps token ids (l,) to sums (l, H), such as `TableSums`.
        capsules: ONNX Runtime's session of a part: pooled states (1, m, H) → condensed capsules (1, m, d).
        labels: The session of the last part: capsules, and candidates → logits.
        label_inputs: The names of the last part's inputs.
        query: (H, m) float32 Q.
        scale: (H,) float32, what the sums are multiplied by.
    """

    encode: Callable[[np.ndarray], np.ndarray]
    capsules: Any
    labels: Any
    label_inputs: frozenset[str]
    query: np.ndarray
    scale: np.ndarray

    def __post_init__(self) -> None:
        for name, array, dimensions in (("query", self.query, 2), ("scale", self.scale, 1)):
            # A sparse matrix is no such array.
            if not isinstance(array, np.ndarray) or array.ndim != dimensions or array.dtype != np.float32:
                raise ModelFolderError(f"{name}: expected {dimensions} dimension(s) of float32")
            if not np.isfinite(array).all():
                raise ModelFolderError(f"{name} holds a number that is infinite or NaN")
        if len(self.query) != len(self.scale):
            raise ModelFolderError(f"query has {len(self.query)} rows, and scale {len(self.scale)} numbers")
        if isinstance(self.encode, TableSums) and self.encode.size != len(self.scale):
            raise ModelFolderError(
                f"the table has {self.encode.size} sums, and scale {len(self.scale)} numbers"
            )

    @classmethod
    def from_arrays(
        cls,
        encode: Callable[[np.ndarray], np.ndarray],
        capsules: Any,
        labels: Any,
        label_inputs: frozenset[str],
        arrays: Mapping[str, Any],
    ) -> Self:
        """Create it from its other parts and saved arrays; raise `ModelFolderError` if one does not fit."""
        if set(arrays) != {"query", "scale"}:
            raise ModelFolderError(f"there are {sorted(arrays)}: expected query and scale")
        return cls(encode, capsules, labels, label_inputs, arrays["query"], arrays["scale"])

    def read(self, tokens: np.ndarray) -> Values:
        """Return what the last part needs of a document of token ids (l,)."""
        states = self._states(tokens)
        scores = states.product(self.query)  # (l, m)
        scores -= scores.max(axis=0)
        shares = np.exp(scores, out=scores)
        pooled = states.transposed_product(shares)  # (H, m)
        pooled = np.divide(pooled.T, shares.sum(axis=0)[:, None], order="C")  # (m, H)
        capsules = self.capsules.run([CAPSULES], {POOLED: pooled[None]})[0]
        found = {CAPSULES: capsules, LARGEST: states.largest()[None], TOKENS: tokens.astype(np.int64)[None]}
        return {name: array for name, array in found.items() if name in self.label_inputs}

    def score(self, read: Values, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for a document that was read."""
        if CANDIDATES not in self.label_inputs:
            return self.labels.run([LOGITS], read)[0][0][labels].reshape(len(labels))
        inputs = {**read, CANDIDATES: labels.astype(np.int64)[None]}
        return self.labels.run([LOGITS], inputs)[0][0].reshape(len(labels))

    def _states(self, tokens: np.ndarray) -> States:
        """Return the states of a document."""
        sums = self.encode(tokens)
        # Compiled code multiplies the states, and checks no index.
        if sums.shape != (len(tokens), len(self.scale)) or sums.size >= _MOST_STATES:
            raise ModelFolderError(f"the exported encoder gives sums of the shape {sums.shape}")
        return States.rectified(sums, self.scale)


@dataclass(frozen=True, eq=False)
class States:
    """The states above zero of l tokens, token by token."""

    limits: np.ndarray  # (l + 1,) int32, where the states of each token begin, and the last ones end
    columns: np.ndarray  # int32, which of the H states each of them is
    values: np.ndarray  # float32
    width: int  # H
    dense: np.ndarray | None  # X (l, H), if many states are above zero

    @classmethod
    def rectified(cls, sums: np.ndarray, scale: np.ndarray) -> Self:
        """Return max(0, sums) · scale, from sums (l, H) and a scale (H,)."""
        length, width = sums.shape
        places = np.flatnonzero(sums > 0).astype(np.int32)
        rows, columns = np.divmod(places, np.int32(width))
        values = sums.reshape(-1)[places].astype(np.float32) * scale[columns]
        limits = np.zeros(length + 1, dtype=np.int32)
        np.cumsum(np.bincount(rows, minlength=length), out=limits[1:])
        dense = None
        if len(values) > _SPARSE * length * width:
            dense = np.maximum(sums, 0).astype(np.float32) * scale
        return cls(limits, columns, values, width, dense)

    def product(self, array: np.ndarray) -> np.ndarray:
        """Return X D (l, m) for the states X (l, H) and an array D (H, m)."""
        if self.dense is not None:
            return self.dense @ array
        return product_of_rows(self.values, self.columns, self.limits, array)

    def transposed_product(self, array: np.ndarray) -> np.ndarray:
        """Return Xᵀ D (H, m) for the states X (l, H) and an array D (l, m)."""
        if self.dense is not None:
            return self.dense.T @ array
        return product_of_transposed(self.values, self.columns, self.limits, array, self.width)

    def largest(self) -> np.ndarray:
        """Return the maximum (H,) over tokens."""
        found = np.zeros(self.width, dtype=np.float32)
        np.maximum.at(found, self.columns, self.values)
        return found
