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
    bound = _reached(logits, width)
    best = np.empty((len(logits), width), dtype=np.int64)
    for row, (values, least) in enumerate(zip(logits, bound, strict=True)):
        columns = np.flatnonzero(values >= least)
        best[row] = columns[np.argsort(-values[columns], kind="stable")[:width]]
    return best


def _reached(logits: np.ndarray, width: int) -> np.ndarray:
    """Return a number (B, 1) that at least `width` values of a row reach, and few more.

    It is the largest such number of the maxima of some values each: of all values it would take far longer.
    """
    groups = 4 * width
    size = logits.shape[1] // groups
    if size > 1:
        logits = logits[:, : size * groups].reshape(-1, size, groups).max(axis=1)  # (B, groups)
    place = logits.shape[1] - width
    return np.partition(logits, place, axis=1)[:, place : place + 1]
