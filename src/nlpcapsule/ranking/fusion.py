"""What a network, a lexical system and similar documents say about a label, joined into one probability.

    z = ⟨w, φ⟩,   φ = (1, f, b) ⊗ (s, t, v, 1)          how likely one candidate is beside another: it ranks
    log-odds = a z + c                                  a > 0: how likely it is that a returned label is right

s: the network's log-odds; t: the lexical system's; v: log-odds of the share that the nearest training
documents give the label; f = log(1 + the label's training documents), as a part of the most frequent label's;
b: the cosine with the nearest training document.

w is a logistic regression on the candidates of held-out documents, so all are weighed as they deserve on
documents none has seen: rare labels otherwise than frequent ones, copies otherwise than new texts. Nearly all
candidates are wrong and clearly so. A first w, fitted to all, finds those that compete; the second is fitted
to them alone, and a and c to the few that a user gets to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from nlpcapsule.dataset.top_columns import top_columns
from nlpcapsule.errors import DataError

CONTENDERS = 20  # candidates per document that the weights are fitted to
SHOWN = 5  # labels per document that the probabilities are fitted to
_SMALLEST_SHARE = 0.003  # keeps the log-odds of a share of 0 or 1 finite


@dataclass(frozen=True)
class Evidence:
    """What is known about the candidates of N documents, C each.

    Attributes:
        network: (N, C) s, the network's log-odds.
        lexical: (N, C) t, the lexical system's.
        shares: (N, C) what part of the nearest training documents has the label, between 0 and 1.
        nearest: (N,) b, the cosine with the nearest training document.
        frequency: (N, C) f of each candidate.
    """

    network: np.ndarray
    lexical: np.ndarray
    shares: np.ndarray
    nearest: np.ndarray
    frequency: np.ndarray

    def features(self) -> np.ndarray:
        """φ (N, C, 12)."""
        shares = np.log((self.shares + _SMALLEST_SHARE) / (1 + _SMALLEST_SHARE - self.shares))
        ones = np.ones(shares.shape)
        said = np.stack([self.network, self.lexical, shares, ones], axis=-1)  # (N, C, 4)
        nearest = np.broadcast_to(self.nearest[:, None], shares.shape)
        by = np.stack([ones, self.frequency, nearest], axis=-1)  # (N, C, 3)
        return (by[..., :, None] * said[..., None, :]).reshape(*shares.shape, -1).astype(np.float64)


@dataclass(frozen=True)
class Fusion:
    """Weights of the joined evidence.

    Attributes:
        weights: (12,) w.
        slope: a.
        offset: c.
    """

    weights: np.ndarray
    slope: float = 1.0
    offset: float = 0.0

    @classmethod
    def fit(cls, evidence: Evidence, right: np.ndarray) -> Self:
        """Learns the weights from held-out documents.

        Args:
            evidence: About the candidates of each.
            right: (N, C) whether the candidate is one of the document's labels.
        """
        if not right.any() or right.all():
            raise DataError(
                "none of the held-out documents has a label among its candidates, so the network's and the "
                "words' evidence cannot be weighed",
                hint="give more held-out documents, or set inference.lexical=none",
            )
        features = evidence.features()
        weights = _weigh(features.reshape(-1, features.shape[-1]), right.reshape(-1))
        strongest = top_columns(features @ weights, CONTENDERS)  # (N, K)
        chosen, is_right = _rows(features, strongest), _rows(right, strongest)
        if is_right.any() and not is_right.all():
            weights = _weigh(chosen, is_right)
        joined = features @ weights  # (N, C)
        shown = top_columns(joined, SHOWN)
        z, is_right = _rows(joined, shown), _rows(right, shown)
        if is_right.all() or not is_right.any():
            return cls(weights)
        calibration = _regression(z[:, None], is_right, fit_intercept=True)
        # A slope of 0 or less, which a handful of documents may give, would turn the ranking around.
        slope = float(calibration.coef_[0, 0])
        return cls(weights, slope, float(calibration.intercept_[0])) if slope > 0 else cls(weights)

    def __call__(self, evidence: Evidence) -> np.ndarray:
        """(N, C) joined log-odds."""
        return self.slope * (evidence.features() @ self.weights) + self.offset

    def to_json(self) -> dict[str, Any]:
        """For the model folder."""
        return {"weights": self.weights.tolist(), "slope": self.slope, "offset": self.offset}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Reads what `to_json` gave."""
        return cls(
            np.asarray(record["weights"], dtype=np.float64), float(record["slope"]), float(record["offset"])
        )


def label_frequency(counts: np.ndarray) -> np.ndarray:
    """F (n,) of each label, from its number of training documents."""
    return np.log1p(counts) / np.log1p(max(int(counts.max()), 1))


def are_right(candidates: np.ndarray, truth: Sequence[np.ndarray]) -> np.ndarray:
    """(N, C) whether a candidate is among its document's labels."""
    return np.stack([np.isin(row, labels) for row, labels in zip(candidates, truth, strict=True)])


def _weigh(features: np.ndarray, right: np.ndarray) -> np.ndarray:
    """W (12,) of the logistic regression from features (M, 12) to right ones (M,)."""
    size = np.sqrt(np.square(features).mean(axis=0))
    scale = np.where(size > 0, size, 1.0)  # one regularisation for all
    return _regression(features / scale, right, fit_intercept=False).coef_[0] / scale


def _rows(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The chosen columns (N, K) of (N, C, …), one after another: (N K, …)."""
    chosen = np.take_along_axis(values, columns.reshape(*columns.shape, *(1,) * (values.ndim - 2)), axis=1)
    return chosen.reshape(-1, *values.shape[2:])


def _regression(features: np.ndarray, right: np.ndarray, fit_intercept: bool) -> Any:
    from sklearn.linear_model import LogisticRegression  # slow to import, and only needed here

    return LogisticRegression(C=1e4, max_iter=1000, fit_intercept=fit_intercept).fit(features, right)
