"""The best columns of each row: how scores become ranks, everywhere."""

from __future__ import annotations

import numpy as np


def top_columns(logits: np.ndarray, top_k: int) -> np.ndarray:
    """(B, K) columns of the largest values, best first; equal values go by column, so ties are settled."""
    width = min(top_k, logits.shape[1])
    if width == 0:
        return np.zeros((len(logits), 0), dtype=np.int64)
    # The K-th largest value of each row: all columns at or above it take part in one stable sort.
    bound = -np.partition(-logits, width - 1, axis=1)[:, width - 1 : width]
    best = np.empty((len(logits), width), dtype=np.int64)
    for row, (values, least) in enumerate(zip(logits, bound, strict=True)):
        columns = np.flatnonzero(values >= least)
        best[row] = columns[np.argsort(-values[columns], kind="stable")[:width]]
    return best
