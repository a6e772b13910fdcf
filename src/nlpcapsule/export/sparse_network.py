"""Score labels with an exported network in parts, which leaves out states that are zero.

After training, a ReLU leaves one or two of a hundred states (l, H) of a document above zero. Capsules pool
them with m learned queries Q (H, m):

    P = softmax over l of X Q,     pooled = Pᵀ X     X (l, H)

With X as a sparse matrix both products cost what is not zero. The result is the same up to rounding, and no
number is quantized. ONNX Runtime, which has no such products, computes what comes before and after. Does not
import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array
from nlpcapsule.lexical.sparse_rows import product_of_rows, product_of_transposed

ENCODER_FILE, CAPSULES_FILE, LABELS_FILE = "encoder.onnx", "capsules.onnx", "labels.onnx"
POOLING_FILE = "pooling.safetensors"
TOKENS, PLACES, CANDIDATES = "tokens", "places_", "candidates"  # `PLACES` ends with the width of a window
SUMS, POOLED, CAPSULES, LARGEST, LOGITS = "sums", "pooled", "capsules", "largest", "logits"
_WIDTHS = {str(width): width for width in range(1, 2**10 + 1)}  # of windows, by their names
_MOST_STATES = 2**31  # of a document, zeros too: their places are 32-bit integers
_LONG = 64  # tokens of a document that two threads encode
_SPARSE = 0.1  # share of the states above zero up to which a sparse matrix is faster

Values = dict[str, np.ndarray]  # inputs of a part, by name


@dataclass(frozen=True, eq=False)
class SparseNetwork:
    """The parts of an exported network, and what pools the states between them.

    Attributes:
        encoder: ONNX Runtime's session of the first part: token ids, or places in tables → sums (1, l, H).
        capsules: The session of the second part: pooled states (1, m, H) → condensed capsules (1, m, d).
        labels: The session of the last part: capsules, and candidates → logits.
        query: (H, m) float32 Q.
        scale: (H,) float32, what the sums are multiplied by.
        padding_id: The token before and after a text.
    """

    encoder: Any
    capsules: Any
    labels: Any
    query: np.ndarray
    scale: np.ndarray
    padding_id: int

    def __post_init__(self) -> None:
        check_array(self.scale, "scale", (self.scale.size,))
        check_array(self.query, "query", (len(self.scale), self.query.size // max(1, len(self.scale))))
        widths = [name.removeprefix(PLACES) for name in self._encoder_inputs if name != TOKENS]
        if any(width not in _WIDTHS for width in widths):
            expected = f"expected {TOKENS}, or {PLACES}1 to {PLACES}{len(_WIDTHS)}"
            raise ModelFolderError(f"{ENCODER_FILE} takes {sorted(self._encoder_inputs)}: {expected}")

    @cached_property
    def _encoder_inputs(self) -> set[str]:
        return {each.name for each in self.encoder.get_inputs()}

    @cached_property
    def _label_inputs(self) -> set[str]:
        return {each.name for each in self.labels.get_inputs()}

    @cached_property
    def _windows(self) -> list[int]:
        """The widths of windows whose places in tables the first part takes; none if it takes tokens."""
        return [width for name, width in _WIDTHS.items() if f"{PLACES}{name}" in self._encoder_inputs]

    def read(self, tokens: np.ndarray) -> Values:
        """Return what the last part needs of a document of token ids (l,)."""
        return self._condensed(tokens, [self._states(tokens, 0, len(tokens))])

    def read_in_threads(self, tokens: np.ndarray, threads: ThreadPoolExecutor) -> Future[Values]:
        """Begin to read a document: with tables, the caller's thread encodes half of it."""
        if len(tokens) < _LONG or not self._windows:
            return threads.submit(self.read, tokens)
        middle = len(tokens) // 2
        first = threads.submit(self._states, tokens, 0, middle)
        second = self._states(tokens, middle, len(tokens))
        return threads.submit(lambda: self._condensed(tokens, [first.result(), second]))

    def score(self, read: Values, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for a document that was read."""
        if CANDIDATES not in self._label_inputs:
            return self.labels.run([LOGITS], read)[0][0][labels].reshape(len(labels))
        inputs = {**read, CANDIDATES: labels.astype(np.int64)[None]}
        return self.labels.run([LOGITS], inputs)[0][0].reshape(len(labels))

    def _states(self, tokens: np.ndarray, start: int, end: int) -> States:
        """Return the states of some of a document's tokens."""
        part = tokens[start:end].astype(np.int64)[None]
        inputs = {TOKENS: part, **self._places(tokens, start, end)}
        given = {name: array for name, array in inputs.items() if name in self._encoder_inputs}
        sums = self.encoder.run([SUMS], given)[0]
        # Compiled code multiplies the states, and checks no index.
        if sums.shape != (1, end - start, len(self.scale)) or sums.size >= _MOST_STATES:
            raise ModelFolderError(f"{ENCODER_FILE} gives sums of the shape {sums.shape}")
        return States.rectified(sums[0], self.scale)

    def _places(self, tokens: np.ndarray, start: int, end: int) -> Values:
        """Return the rows (width, 1, l) of tables at each offset of a window, for tokens from start to end.

        The row of a word at offset o in a window is its token id · width + o: see `ConvolutionTables`.
        """
        reach, length = max(self._windows, default=0) // 2, end - start
        padded = np.full(length + 2 * reach, self.padding_id, dtype=np.int64)
        first, last = max(0, start - reach), min(len(tokens), end + reach)
        padded[first - start + reach : last - start + reach] = tokens[first:last]
        found = {}
        for width in self._windows:
            left = reach - (width - 1) // 2
            windows = sliding_window_view(padded[left : left + length + width - 1], length)  # (width, l)
            places = windows * width + np.arange(width)[:, None]
            found[f"{PLACES}{width}"] = places[:, None]
        return found

    def _condensed(self, tokens: np.ndarray, parts: Sequence[States]) -> Values:
        """Return what the last part needs, from the states of a document's parts."""
        states = States.joined(parts)
        scores = states.product(self.query)  # (l, m)
        scores -= scores.max(axis=0)
        shares = np.exp(scores, out=scores)
        pooled = states.transposed_product(shares)  # (H, m)
        pooled = np.divide(pooled.T, shares.sum(axis=0)[:, None], order="C")  # (m, H)
        capsules = self.capsules.run([CAPSULES], {POOLED: pooled[None]})[0]
        found = {CAPSULES: capsules, LARGEST: states.largest()[None], TOKENS: tokens.astype(np.int64)[None]}
        return {name: array for name, array in found.items() if name in self._label_inputs}


@dataclass(frozen=True, eq=False)
class States:
    """The states above zero of l tokens, token by token."""

    limits: np.ndarray  # (l + 1,) int32, where the states of each token begin, and the last ones end
    columns: np.ndarray  # int32, which of the H states each of them is
    values: np.ndarray  # float32
    width: int  # H

    @classmethod
    def rectified(cls, sums: np.ndarray, scale: np.ndarray) -> Self:
        """Return max(0, sums) · scale, from sums (l, H) and a scale (H,)."""
        length, width = sums.shape
        places = np.flatnonzero(sums > 0).astype(np.int32)
        rows, columns = np.divmod(places, np.int32(width))
        values = sums.reshape(-1)[places].astype(np.float32) * scale[columns]
        limits = np.zeros(length + 1, dtype=np.int32)
        np.cumsum(np.bincount(rows, minlength=length), out=limits[1:])
        return cls(limits, columns, values, width)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the states of successive tokens as one."""
        if len(parts) == 1:
            return parts[0]
        limits, start = [np.zeros(1, dtype=np.int32)], np.int32(0)
        for part in parts:
            limits.append(part.limits[1:] + start)
            start += part.limits[-1]
        columns = np.concatenate([part.columns for part in parts])
        return cls(
            np.concatenate(limits), columns, np.concatenate([part.values for part in parts]), parts[0].width
        )

    def product(self, dense: np.ndarray) -> np.ndarray:
        """Return X D (l, m) for the states X (l, H) and an array D (H, m)."""
        if self._dense is not None:
            return self._dense @ dense
        return product_of_rows(self.values, self.columns, self.limits, dense)

    def transposed_product(self, dense: np.ndarray) -> np.ndarray:
        """Return Xᵀ D (H, m) for the states X (l, H) and an array D (l, m)."""
        if self._dense is not None:
            return self._dense.T @ dense
        return product_of_transposed(self.values, self.columns, self.limits, dense, self.width)

    @cached_property
    def _dense(self) -> np.ndarray | None:
        """X (l, H), if many states are above zero."""
        length = len(self.limits) - 1
        if len(self.values) <= _SPARSE * length * self.width:
            return None
        dense = np.zeros((length, self.width), dtype=np.float32)
        dense[np.repeat(np.arange(length), np.diff(self.limits)), self.columns] = self.values
        return dense

    def largest(self) -> np.ndarray:
        """Return the maximum (H,) over tokens."""
        found = np.zeros(self.width, dtype=np.float32)
        np.maximum.at(found, self.columns, self.values)
        return found
