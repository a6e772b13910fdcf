"""Confidence intervals and paired tests by resampling documents or questions."""

from dataclasses import dataclass

import numpy as np

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.ranked import check_positive_integer

DRAWS_AT_ONCE = 2_000_000  # limits memory to about 32 MB for any number of documents


@dataclass(frozen=True, slots=True)
class PairedBootstrap:
    """The comparison of two systems on the same documents."""

    difference: float  # mean of a - b
    low: float  # lower end of the 95% interval of the difference
    high: float  # upper end
    p_value: float  # two-sided: twice the fraction of resampled differences on the other side of zero


def paired_bootstrap(a: np.ndarray, b: np.ndarray, resamples: int = 10_000, seed: int = 0) -> PairedBootstrap:
    """Compare two systems by resampling the N documents that both were scored on, given in the same order.

    The p-value is never below 2 / (resamples + 1): this many draws cannot resolve smaller ones.
    """
    a, b = _as_figures("a", a), _as_figures("b", b)
    if len(a) != len(b):
        raise DataError(f"`a` and `b` must cover the same documents. Got {len(a)} and {len(b)} instead.")
    differences = a - b
    means = resampled_means(differences, resamples, seed)  # (resamples,)
    low, high = np.percentile(means, [2.5, 97.5])
    one_sided = min((means <= 0).sum(), (means >= 0).sum())
    p_value = min(1.0, 2 * (one_sided + 1) / (resamples + 1))
    return PairedBootstrap(float(differences.mean()), float(low), float(high), float(p_value))


def bootstrap_interval(values: np.ndarray, resamples: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """Return the 95% percentile interval of the mean of (N,) values."""
    low, high = np.percentile(resampled_means(values, resamples, seed), [2.5, 97.5])
    return float(low), float(high)


def resampled_means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Return (resamples,) means of N values drawn from `values` (N,) with replacement."""
    check_positive_integer("resamples", resamples)
    values = _as_figures("values", values)
    random = np.random.default_rng(seed)
    means = np.empty(resamples)
    chunk = max(1, DRAWS_AT_ONCE // len(values))
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        drawn = random.integers(len(values), size=(rows, len(values)), dtype=np.int32)
        means[start : start + rows] = values[drawn].mean(axis=1)
    return means


def _as_figures(name: str, values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise DataError(
            f"`{name}` must be a vector, one figure per document. Got shape {values.shape} instead."
        )
    if not len(values):
        raise DataError("no figures were given, so there is nothing to resample")
    if np.isnan(values).any():
        raise DataError(f"`{name}` must not contain NaN.")
    return values
