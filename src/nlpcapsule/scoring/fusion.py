"""Fuse the scores of a network, a lexical system and similar documents into one probability per label.

    φ = (1, f, b) ⊗ (s, t, v, 1)
    z = (1 − g) ⟨u, φ⟩ + g ⟨w, φ⟩      ranks the candidates
    g = min(1, max(0, 1 + ⟨u, φ⟩ − ⟨u, φ₂₀⟩))
    log-odds = a z + c                 a > 0: calibrated for the returned labels

s: the network's log-odds; t: the lexical system's; v: log-odds of the share that the nearest training
documents give the label; f = log(1 + the label's training documents), divided by the most frequent label's;
b: the cosine with the nearest training document.

Where labels have names, φ also has (1, f, e) ⊗ (m, k, m², k²) and e ⊗ (s, 1). m and k: how well the name
matches the document and its lead; e: 1 for a label without examples, 0 otherwise. Where too few such labels
are relevant in the held-out documents, e is the only one of the features with e that is kept.

u and w are logistic regressions on the candidates of held-out documents, which no part was trained on. Rare
and frequent labels, copies and new texts get different weights. Most candidates are clearly wrong. u, fitted
to all candidates, selects the 20 best of a document, φ₂₀ being the last of them; w is fitted to these 20 and
ranks them, and u ranks the others. g blends the two without a step, so rounding cannot decide the order. a
and c are fitted to the few labels that users see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.errors import DataError

FEATURES, FEATURES_WITH_NAMES = 12, 26  # per candidate
CONTENDERS = 20  # candidates per document that w is fitted to and ranks
SHOWN = 5  # labels per document that the probabilities are fitted to
_FEWEST = 10  # relevant labels without examples that are needed to fit weights for such labels
_OF_NO_EXAMPLES = slice(20, 25)  # columns of φ: e ⊗ (m, k, m², k², s)
_AT_A_TIME = 1_000  # documents whose φ is in memory at once, at 50 to 100 kB each
_FREEDOM = 1e4  # inverse regularisation strength; lower below 100 documents, which keeps weights small
_SMALLEST_SHARE = 0.003  # keeps the log-odds of a share of 0 or 1 finite


@dataclass(frozen=True)
class CandidateFeatures:
    """Features of the candidates of N documents, C each."""

    network: np.ndarray  # (N, C) s, the network's log-odds
    lexical: np.ndarray  # (N, C) t, the lexical system's log-odds
    shares: np.ndarray  # (N, C) the share of the nearest training documents that have the label, from 0 to 1
    nearest: np.ndarray  # (N,) b, the cosine with the nearest training document
    frequency: np.ndarray  # (N, C) f of each candidate; 0 for a label without examples
    names: np.ndarray | None = None  # (N, C, 2) m and k, how well names match; None where labels have none

    def __getitem__(self, rows: slice | np.ndarray) -> CandidateFeatures:
        """Return the features of the chosen documents."""
        arrays: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: array[rows] for name, array in arrays.items() if array is not None})

    def expanded(self) -> np.ndarray:
        """Return φ (N, C, 12), or (N, C, 26) with names."""
        shares = np.log((self.shares + _SMALLEST_SHARE) / (1 + _SMALLEST_SHARE - self.shares))
        ones = np.ones(shares.shape)
        said = np.stack([self.network, self.lexical, shares, ones], axis=-1)  # (N, C, 4)
        by_frequency, by_nearest = said * self.frequency[..., None], said * self.nearest[:, None, None]
        features = np.concatenate([said, by_frequency, by_nearest], axis=-1, dtype=np.float64)  # (N, C, 12)
        if self.names is None:
            return features
        no_examples = (self.frequency == 0).astype(np.float64)
        matches = np.concatenate([self.names, np.square(self.names)], axis=-1)  # (N, C, 4)
        by = np.stack([ones, self.frequency, no_examples], axis=-1)  # (N, C, 3)
        named = (by[..., :, None] * matches[..., None, :]).reshape(*shares.shape, -1)  # (N, C, 12)
        alone = np.stack([no_examples * self.network, no_examples], axis=-1)
        return np.concatenate([features, named, alone], axis=-1)


@dataclass(frozen=True)
class Fusion:
    """Weights that fuse the features of a candidate."""

    first: np.ndarray  # (12,) u, or (26,) with names
    weights: np.ndarray  # w, of the same size
    slope: float = 1.0  # a
    offset: float = 0.0  # c
    rarest: float = 0.0  # f of the rarest label when u and w were fitted, if labels were learned since

    @classmethod
    def fit(cls, features: CandidateFeatures, relevant: np.ndarray) -> Self:
        """Learn the weights from candidates of held-out documents; `relevant` (N, C) marks their labels."""
        if not _has_both(relevant):
            problem = "none of the held-out documents has a label among its candidates"
            if relevant.any():
                problem = "each candidate of the held-out documents is one of their labels"
            raise DataError(
                f"{problem}, so the network's and the words' evidence cannot be weighed",
                hint="give more held-out documents, or train a network alone, as with --model label-query",
            )
        expanded = features.expanded()  # (N, C, F)
        if features.names is not None and (relevant & (features.frequency == 0)).sum() < _FEWEST:
            expanded[..., _OF_NO_EXAMPLES] = 0  # with only negatives, a good match would count as bad
        freedom = min(_FREEDOM, len(relevant) ** 2)
        first = _weigh(expanded.reshape(-1, expanded.shape[-1]), relevant.reshape(-1), freedom)
        top = top_columns(expanded @ first, CONTENDERS)  # (N, K)
        chosen, is_positive = _rows(expanded, top), _rows(relevant, top)
        weights = _weigh(chosen, is_positive, freedom) if _has_both(is_positive) else first
        joined = _joined_in_two(expanded @ first, expanded @ weights)  # (N, C)
        shown = top_columns(joined, SHOWN)
        z, is_positive = _rows(joined, shown), _rows(relevant, shown)
        if not _has_both(is_positive):
            return cls(first, weights)
        calibration = _regression(z[:, None], is_positive, freedom, fit_intercept=True)
        # A slope of 0 or less, which very few documents may give, would reverse the ranking.
        slope, offset = float(calibration.coef_[0, 0]), float(calibration.intercept_[0])
        return cls(first, weights, slope, offset) if slope > 0 else cls(first, weights)

    def frequency(self, frequency: np.ndarray) -> np.ndarray:
        """Return f (N, C) of candidates; a label that was learned later counts as the rarest one of before.

        The weights hold for the frequencies that they were fitted to. Beyond them they would make a label
        with a single document likely everywhere, or nowhere.
        """
        return np.where(frequency > 0, np.maximum(frequency, self.rarest), frequency)

    def __call__(self, features: CandidateFeatures) -> np.ndarray:
        """Return the fused log-odds (N, C)."""
        if len(features.network) <= _AT_A_TIME:
            return self._joined(features)
        starts = range(0, len(features.network), _AT_A_TIME)
        return np.concatenate([self._joined(features[start : start + _AT_A_TIME]) for start in starts])

    def _joined(self, features: CandidateFeatures) -> np.ndarray:
        expanded = features.expanded()  # (N, C, F)
        return self.slope * _joined_in_two(expanded @ self.first, expanded @ self.weights) + self.offset

    def to_json(self) -> dict[str, Any]:
        """Return the weights as JSON values, for the model folder."""
        weights = {"first": self.first.tolist(), "weights": self.weights.tolist()}
        return {**weights, "slope": self.slope, "offset": self.offset, "rarest": self.rarest}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Parse the output of `to_json`; raise `DataError` if a value is missing or not a number."""
        try:
            rarest = record.get("rarest", 0.0)  # earlier versions have none
            numbers = [*record["first"], *record["weights"], record["slope"], record["offset"], rarest]
            if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
                raise TypeError("a weight is not a number")
            first, weights = (np.asarray(record[name], dtype=np.float64) for name in ("first", "weights"))
            fusion = cls(first, weights, float(record["slope"]), float(record["offset"]), float(rarest))
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"fusion.json: expected weights, a slope and an offset ({error!r:.80})") from None
        if not np.isfinite([*first, *weights, fusion.slope, fusion.offset]).all() or fusion.slope <= 0:
            raise DataError("fusion.json: a weight is infinite, or the slope is not positive")
        if not 0 <= fusion.rarest <= 1:
            raise DataError(f"fusion.json: `rarest` must be from 0 to 1. Got {fusion.rarest} instead.")
        return fusion

    def check(self, has_names: bool) -> None:
        """Raise `DataError` if the weights do not match the model's features."""
        count = FEATURES_WITH_NAMES if has_names else FEATURES
        if self.first.shape != (count,) or self.weights.shape != (count,):
            found = f"{len(self.first)} and {len(self.weights)} weights"
            raise DataError(f"fusion.json has {found}, and the model {count} features")


UNFITTED = Fusion(np.zeros(0), np.zeros(0))


def _has_both(relevant: np.ndarray) -> bool:
    return bool(relevant.any() and not relevant.all())


def _joined_in_two(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return z (N, C) from ⟨u, φ⟩ and ⟨w, φ⟩."""
    return first + competes(first) * (second - first)


def competes(first: np.ndarray) -> np.ndarray:
    """Return g (N, C) from ⟨u, φ⟩."""
    top = top_columns(first, CONTENDERS)  # (N, K)
    weakest = np.take_along_axis(first, top[:, -1:], axis=1)  # (N, 1) ⟨u, φ₂₀⟩
    return np.clip(1 + first - weakest, 0, 1)


def label_frequency(counts: np.ndarray) -> np.ndarray:
    """Return f (n,) of each label, from its number of training documents."""
    return np.log1p(counts) / np.log1p(max(int(counts.max()), 1))


def is_relevant(candidates: np.ndarray, truth: Sequence[np.ndarray]) -> np.ndarray:
    """Return whether each candidate (N, C) is one of its document's labels."""
    return np.stack([np.isin(row, labels) for row, labels in zip(candidates, truth, strict=True)])


def _weigh(features: np.ndarray, right: np.ndarray, freedom: float) -> np.ndarray:
    """Fit the weights (F,) of a logistic regression on features (M, F) and targets (M,)."""
    size = np.sqrt(np.square(features).mean(axis=0))
    scale = np.where(size > 0, size, 1.0)  # the same regularisation for all features
    return _regression(features / scale, right, freedom, fit_intercept=False).coef_[0] / scale


def _rows(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Select columns (N, K) of (N, C, …) and flatten them to (N K, …)."""
    chosen = np.take_along_axis(values, columns.reshape(*columns.shape, *(1,) * (values.ndim - 2)), axis=1)
    return chosen.reshape(-1, *values.shape[2:])


def _regression(features: np.ndarray, right: np.ndarray, freedom: float, fit_intercept: bool) -> Any:
    from sklearn.linear_model import LogisticRegression  # slow to import and only needed here

    return LogisticRegression(C=freedom, max_iter=1000, fit_intercept=fit_intercept).fit(features, right)
