"""The network's evidence and the words' evidence about a label, joined into one probability.

    log-odds = ⟨w, φ⟩,   φ = (s, t, f s, f t, f, 1)

s: the network's log-odds; t: the lexical system's; f = log(1 + the label's training documents), as a part of
the most frequent label's.

w is a logistic regression on the candidates of held-out documents, so the two are weighed as they deserve on
documents neither has seen, rare labels otherwise than frequent ones, and what comes out is a probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from nlpcapsule.errors import DataError


@dataclass(frozen=True)
class Fusion:
    """Weights of the joined evidence.

    Attributes:
        weights: (6,) w.
    """

    weights: np.ndarray

    @classmethod
    def fit(cls, network: np.ndarray, lexical: np.ndarray, frequency: np.ndarray, right: np.ndarray) -> Self:
        """Learns the weights from held-out documents.

        Args:
            network: (N, C) the network's log-odds of each document's candidates.
            lexical: (N, C) the lexical system's.
            frequency: (N, C) f of each candidate.
            right: (N, C) whether the candidate is one of the document's labels.
        """
        from sklearn.linear_model import LogisticRegression  # slow to import, and only needed here

        if not right.any() or right.all():
            raise DataError(
                "none of the held-out documents has a label among its candidates, so the network's and the "
                "words' evidence cannot be weighed",
                hint="give more held-out documents, or set inference.lexical=none",
            )
        pairs = _features(network, lexical, frequency).reshape(-1, 6)
        regression = LogisticRegression(C=1e4, max_iter=1000, fit_intercept=False)
        scale = np.maximum(
            pairs.std(axis=0), 1e-9
        )  # one regularisation for all; the constant keeps its place
        scale[-1] = 1.0
        regression.fit(pairs / scale, right.reshape(-1))
        return cls(regression.coef_[0] / scale)

    def __call__(self, network: np.ndarray, lexical: np.ndarray, frequency: np.ndarray) -> np.ndarray:
        """(N, C) joined log-odds; arguments as in `fit`."""
        return _features(network, lexical, frequency) @ self.weights

    def to_json(self) -> dict[str, Any]:
        """For the model folder."""
        return {"weights": self.weights.tolist()}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Reads what `to_json` gave."""
        return cls(np.asarray(record["weights"], dtype=np.float64))


def label_frequency(counts: np.ndarray) -> np.ndarray:
    """F (n,) of each label, from its number of training documents."""
    return np.log1p(counts) / np.log1p(max(int(counts.max()), 1))


def are_right(candidates: np.ndarray, truth: Sequence[np.ndarray]) -> np.ndarray:
    """(N, C) whether a candidate is among its document's labels."""
    return np.stack([np.isin(row, labels) for row, labels in zip(candidates, truth, strict=True)])


def _features(network: np.ndarray, lexical: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """φ (N, C, 6)."""
    network, lexical = np.asarray(network, dtype=np.float64), np.asarray(lexical, dtype=np.float64)
    ones = np.ones_like(network)
    return np.stack(
        [network, lexical, frequency * network, frequency * lexical, frequency * ones, ones], axis=-1
    )
