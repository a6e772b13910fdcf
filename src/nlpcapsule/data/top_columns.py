"""Return the best columns of each row; all rankings are computed here."""

import numpy as np

from nlpcapsule.errors import NlpCapsuleError

NO_NUMBER = "the model gives scores that are NaN: its weights are damaged or far too large; train it again"


def top_columns(logits: np.ndarray, top_k: int) -> np.ndarray:
    """Return the columns (B, K) of the largest values, best first; ties are broken by column.

    A NaN, which has no place in a ranking, is an error.
    """
    if np.isnan(logits).any():
        raise NlpCapsuleError(NO_NUMBER)
    width = min(top_k, logits.shape[1])
    if width == 0:
        return np.zeros((len(logits), 0), dtype=np.int64)
    # The K-th largest value of each row: all columns at or above it are sorted stably.
    bound = -np.partition(-logits, width - 1, axis=1)[:, width - 1 : width]
    best = np.empty((len(logits), width), dtype=np.int64)
    for row, (values, least) in enumerate(zip(logits, bound, strict=True)):
        columns = np.flatnonzero(values >= least)
        best[row] = columns[np.argsort(-values[columns], kind="stable")[:width]]
    return best
