"""Train the machines of labels, each on its own documents and its negatives.

Nine in ten rows of a rare label are those of the sample, which all labels share: they are prepared once.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nlpcapsule.lexical.many_labels.machine import Rows, train_machine
from nlpcapsule.lexical.many_labels.nearest_negatives import MOST, NearestNegatives

_WEIGHTS = 300  # largest weights of a label that are kept; 1,000 rank no better


class LabelMachines:
    """Rows (N, V) and negatives that machines are trained on, one label after another."""

    def __init__(self, features: sparse.csr_matrix, negatives: NearestNegatives) -> None:
        self._features, self._negatives = features, negatives
        sample = features[negatives.sample]
        # A dense weight for words that occur: first those of the sample, then others of a label's documents.
        self._words = np.unique(sample.indices)
        self._column = np.full(features.shape[1], -1, dtype=np.int32)  # (V,) -1: not in the sample
        self._column[self._words] = np.arange(len(self._words), dtype=np.int32)
        sample.indices = self._column[sample.indices]
        self._sample = sample  # (S, V), by columns

    def fit(
        self, label: int, holders: np.ndarray, smallest: float, C: float, seed: int
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Train the label that the documents `holders` have.

        Returns the words (K,) of the largest weights, in order, these weights (K,) float32, none of them
        below `smallest`, and the bias.
        """
        share = max(1.0, len(holders) / MOST)  # that one document with the label counts for
        nearest, is_sampled, weight = self._negatives.of(label, holders)
        holders = holders[np.arange(0, len(holders), share).astype(np.int64)]
        rows, words = self._rows(np.concatenate([holders, nearest]), is_sampled)
        counts = [len(holders), len(nearest), rows.shape[0] - len(holders) - len(nearest)]
        has_label = np.repeat([1.0, 0.0, 0.0], counts)
        found, bias = train_machine(rows, has_label, np.repeat([share, 1.0, weight], counts), C, seed)
        kept = np.flatnonzero(np.abs(found) >= smallest)
        words, values = words[kept], found[kept].astype(np.float32)
        largest = _largest(values, words)
        return words[largest], values[largest], bias

    def _rows(self, documents: np.ndarray, is_sampled: np.ndarray) -> tuple[Rows, np.ndarray]:
        """Return the rows of documents and then of the sample, by column, and each column's word."""
        sample = self._sample if is_sampled.all() else self._sample[is_sampled]
        chosen = self._features[documents]
        others = np.unique(chosen.indices[self._column[chosen.indices] < 0])
        self._column[others] = np.arange(len(self._words), len(self._words) + len(others), dtype=np.int32)
        columns = np.concatenate([self._column[chosen.indices], sample.indices])
        self._column[others] = -1
        bounds = np.concatenate([chosen.indptr, chosen.indptr[-1] + sample.indptr[1:]], dtype=np.int32)
        words = np.concatenate([self._words, others])
        shape = (len(bounds) - 1, len(words))
        return Rows(np.concatenate([chosen.data, sample.data]), columns, bounds, shape), words


def _largest(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the places, by word, of the largest values by size, none of them 0; of equal ones the first."""
    sizes = np.abs(values)
    bound = np.float32(0)
    if len(sizes) > _WEIGHTS:
        bound = np.partition(sizes, len(sizes) - _WEIGHTS)[len(sizes) - _WEIGHTS]
    places = np.flatnonzero(sizes >= bound if bound > 0 else sizes)
    places = places[np.argsort(words[places])]
    if len(places) <= _WEIGHTS:
        return places
    is_chosen = sizes[places] > bound
    is_chosen[np.flatnonzero(~is_chosen)[: _WEIGHTS - is_chosen.sum()]] = True
    return places[is_chosen]
