"""A document as a sparse row of word weights, tf-idf.

x_w = (1 + log tf_w) · (log((1 + N) / (1 + df_w)) + 1),     x scaled to length 1

Documents say first what they are about: a law its title, a letter its matter. The first words, the lead, can
be features of their own beside those of the whole: (x, ρ y) / √(1 + ρ²), y as x, of the first words alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.word_frequency import document_frequency
from nlpcapsule.lexical.arrays import check_array, check_range, single_integer

LEAD_TOKENS = 60  # words, in which a document says most of what it is about
_LEAD_WEIGHT = 0.7  # ρ
_MOST_LEAD_TOKENS = 2**31


@dataclass(frozen=True)
class BagOfWords:
    """Word weights learned from the training part.

    Attributes:
        idf: (V,) float32; 0 for tokens that are no words and for words the training part lacks.
        lead_tokens: How many first words are the lead; 0 leaves it out.
        lead_idf: (V,) float32, of leads; empty where they are left out.
    """

    idf: np.ndarray
    lead_tokens: int = 0
    lead_idf: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    @classmethod
    def fit(
        cls, tokens: Ragged, vocabulary_size: int, ignored: tuple[int, ...] = (), lead_tokens: int = 0
    ) -> Self:
        """Counts in how many documents each word stands."""
        idf = _idf(tokens, vocabulary_size, ignored)
        return (
            cls(idf, lead_tokens, _idf(tokens.cut(lead_tokens), vocabulary_size, ignored))
            if lead_tokens
            else cls(idf)
        )

    def rows(self, tokens: Ragged) -> sparse.csr_matrix:
        """(N, V) float32, or (N, 2 V) with leads; rows of length 1 (or empty), columns sorted."""
        whole = _weighted(tokens, self.idf)
        if not self.lead_tokens:
            return whole
        lead = _weighted(tokens.cut(self.lead_tokens), self.lead_idf)
        return normalize(sparse.hstack([whole, _LEAD_WEIGHT * lead], format="csr")).astype(np.float32)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For a model's files."""
        return {"idf": self.idf, "lead_tokens": np.array([self.lead_tokens]), "lead_idf": self.lead_idf}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Reads what `to_arrays` gave, whatever else there is."""
        return cls(
            arrays["idf"], single_integer(arrays.get("lead_tokens"), "lead_tokens"), arrays["lead_idf"]
        )

    @property
    def width(self) -> int:
        """Features of a document: V, or 2 V with lead tokens."""
        return len(self.idf) + len(self.lead_idf)

    def check(self, vocabulary_size: int) -> None:
        """Refuse word weights that do not fit the tokenizer.

        Raises:
            ModelFolderError: They do not.
        """
        check_array(self.idf, "idf", (vocabulary_size,))
        check_array(self.lead_idf, "lead_idf", (vocabulary_size if self.lead_tokens else 0,))
        check_range(np.array([self.lead_tokens]), "lead_tokens", 0, _MOST_LEAD_TOKENS)


def _idf(tokens: Ragged, vocabulary_size: int, ignored: tuple[int, ...]) -> np.ndarray:
    count, containing = document_frequency(tokens, vocabulary_size)
    idf = np.log((1 + count) / (1 + containing)) + 1
    idf[containing == 0] = 0
    idf[list(ignored)] = 0
    return idf.astype(np.float32)


def _weighted(tokens: Ragged, idf: np.ndarray) -> sparse.csr_matrix:
    """(N, V) float32, rows of length 1 (or empty)."""
    weights = word_counts(tokens, len(idf))
    weights.data = (1 + np.log(weights.data)) * idf[weights.indices]
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
