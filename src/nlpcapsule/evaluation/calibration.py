"""Calibration: whether stated probabilities match observed accuracy."""

import numpy as np

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.ranked import check_positive_integer

ROUNDING = 1e-6  # a capsule's length in float32 may exceed 1 by this much


def expected_calibration_error(probabilities: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Return the mean distance of stated probability (M,) and observed accuracy, over bins of equal mass.

    Equal probabilities share their mean correctness, so that the order of the input does not matter if a
    bin's edge falls between them. There are M bins if there are fewer values.

    Example:
        >>> expected_calibration_error(np.array([0.5, 0.5, 1.0]), np.array([1, 0, 1]))
        0.0
    """
    check_positive_integer("bins", bins)
    probabilities = np.asarray(probabilities, dtype=np.float64)
    correct = np.asarray(correct, dtype=np.float64)
    if probabilities.ndim != 1 or probabilities.shape != correct.shape:
        raise DataError(
            f"`probabilities` and `correct` must be vectors of one length. "
            f"Got shapes {probabilities.shape} and {correct.shape} instead."
        )
    if not len(probabilities):
        raise DataError("no probabilities were given, so there is no calibration to measure")
    if not ((probabilities >= -ROUNDING) & (probabilities <= 1 + ROUNDING)).all():  # rejects NaN, too
        raise DataError(
            "`probabilities` must lie between 0 and 1, without NaN; leave scores out if they do not."
        )

    _, group = np.unique(probabilities, return_inverse=True)
    accuracy = np.bincount(group, weights=correct) / np.bincount(group)  # (distinct,)
    gaps = np.sort(probabilities) - np.repeat(accuracy, np.bincount(group))  # (M,) ascending in probability
    parts = np.array_split(gaps, min(bins, len(gaps)))
    return float(sum(abs(part.sum()) for part in parts) / len(gaps))
