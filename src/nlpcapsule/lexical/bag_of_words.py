"""A document as a sparse row of word weights, tf-idf.

x_w = (1 + log tf_w) · (log((1 + N) / (1 + df_w)) + 1),     x scaled to length 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from nlpcapsule.dataset.ragged import Ragged


@dataclass(frozen=True)
class BagOfWords:
    """Word weights learned from the training part.

    Attributes:
        idf: (V,) float32; 0 for tokens that are no words and for words the training part lacks.
    """

    idf: np.ndarray

    @classmethod
    def fit(cls, tokens: Ragged, vocabulary_size: int, ignored: tuple[int, ...] = ()) -> Self:
        """Counts in how many documents each word stands."""
        counts = word_counts(tokens, vocabulary_size)
        frequency = np.bincount(counts.indices, minlength=vocabulary_size)
        idf = np.log((1 + len(tokens)) / (1 + frequency)) + 1
        idf[frequency == 0] = 0
        idf[list(ignored)] = 0
        return cls(idf.astype(np.float32))

    def rows(self, tokens: Ragged) -> sparse.csr_matrix:
        """(N, V) float32, rows of length 1 (or empty), columns sorted."""
        weights = word_counts(tokens, len(self.idf))
        weights.data = (1 + np.log(weights.data)) * self.idf[weights.indices]
        weights.eliminate_zeros()
        return normalize(weights).astype(np.float32)


def word_counts(tokens: Ragged, vocabulary_size: int) -> sparse.csr_matrix:
    """(N, V) float64: how often each word stands in each document."""
    matrix = sparse.csr_matrix(
        (np.ones(len(tokens.values)), tokens.values, tokens.offsets),
        shape=(len(tokens), vocabulary_size),
        copy=True,  # summing sorts in place, and the documents' own word order must stay
    )
    matrix.sum_duplicates()
    return matrix
