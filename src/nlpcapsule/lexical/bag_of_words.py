"""Represent a document as a sparse row of tf-idf weights.

x_w = (1 + log tf_w) · (log((1 + N) / (1 + df_w)) + 1),     x scaled to length 1

Documents often start with what they are about: a law with its title, a letter with its subject. The first
words, the lead, can be additional features: (x, ρ y) / √(1 + ρ²), where y is x of the first words alone.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.arrays import check_array, check_range, single_integer
from nlpcapsule.lexical.many_labels.threaded import threaded
from nlpcapsule.lexical.sparse_rows import row_of, stacked_rows, unchecked_rows, unit_rows

T = TypeVar("T")

LEAD_TOKENS = 60  # words, the most informative part of many documents
LEAD_TOKENS_HELP = "first words of a document that are additional, separate features; 0: none"
_LEAD_WEIGHT = 0.7  # ρ
_MOST_LEAD_TOKENS = 2**31
_DOCUMENTS_AT_A_TIME = 8_192  # which bounds memory


@dataclass(frozen=True)
class BagOfWords:
    """Word weights learned from the training part; those of the leads are empty if `lead_tokens` is 0."""

    idf: np.ndarray  # (V,) float32; 0 for tokens that are not words and words missing in the training part
    lead_tokens: int = 0  # number of words in the lead
    lead_idf: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.float32))  # (V,) float32

    @classmethod
    def fit(
        cls, tokens: Ragged, vocabulary_size: int, ignored: tuple[int, ...] = (), lead_tokens: int = 0
    ) -> Self:
        """Compute the document frequency of each word."""
        idf = _idf(tokens, vocabulary_size, ignored)
        if not lead_tokens:
            return cls(idf)
        return cls(idf, lead_tokens, _idf(tokens, vocabulary_size, ignored, lead_tokens))

    def rows(self, tokens: Ragged) -> sparse.csr_matrix:
        """Return features (N, V) float32, or (N, 2 V) with leads; rows have length 1 (or are empty).

        The features of many documents are kept in files that are mapped into memory.
        """
        if len(tokens) <= _DOCUMENTS_AT_A_TIME:
            return self._rows(tokens)
        return stacked_rows(threaded(self._rows, _parts(tokens)), (len(tokens), self.width))

    def _rows(self, tokens: Ragged) -> sparse.csr_matrix:
        whole = once(tokens, f"tf-idf {self._hash}", lambda: _weighted(tokens, self.idf))
        if not self.lead_tokens:
            return whole
        lead = _weighted(tokens.cut(self.lead_tokens), self.lead_idf)
        data = np.concatenate([whole.data, np.float32(_LEAD_WEIGHT) * lead.data])
        columns = np.concatenate([whole.indices, lead.indices + whole.indices.dtype.type(len(self.idf))])
        if len(tokens) > 1:
            order = np.argsort(np.concatenate([row_of(whole), row_of(lead)]), kind="stable")
            data, columns = data[order], columns[order]
        ends = whole.indptr + lead.indptr
        return unit_rows(unchecked_rows(data, columns, ends, (len(tokens), self.width)))

    @cached_property
    def _hash(self) -> str:
        """Identifies equal word weights in different models."""
        return hashlib.sha256(self.idf.tobytes()).hexdigest()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to save with the model."""
        return {"idf": self.idf, "lead_tokens": np.array([self.lead_tokens]), "lead_idf": self.lead_idf}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Create it from the output of `to_arrays`; other arrays are ignored."""
        return cls(
            arrays["idf"], single_integer(arrays.get("lead_tokens"), "lead_tokens"), arrays["lead_idf"]
        )

    @property
    def width(self) -> int:
        """Number of features: V, or 2 V with lead tokens."""
        return len(self.idf) + len(self.lead_idf)

    def check(self, vocabulary_size: int) -> None:
        """Raise `ModelFolderError` if the word weights do not fit the tokenizer."""
        check_array(self.idf, "idf", (vocabulary_size,))
        check_array(self.lead_idf, "lead_idf", (vocabulary_size if self.lead_tokens else 0,))
        check_range(np.array([self.lead_tokens]), "lead_tokens", 0, _MOST_LEAD_TOKENS)


def _parts(tokens: Ragged) -> Iterator[Ragged]:
    """Yield a few documents at a time."""
    for start in range(0, len(tokens), _DOCUMENTS_AT_A_TIME):
        yield tokens.slice(start, min(start + _DOCUMENTS_AT_A_TIME, len(tokens)))


def _idf(tokens: Ragged, vocabulary_size: int, ignored: tuple[int, ...], lead_tokens: int = 0) -> np.ndarray:
    """Return the inverse document frequency (V,) of words, or of those in the leads."""

    def frequency(part: Ragged) -> np.ndarray:
        words = word_counts(part.cut(lead_tokens) if lead_tokens else part, vocabulary_size).indices
        return np.bincount(words, minlength=vocabulary_size)

    containing = np.zeros(vocabulary_size, dtype=np.int64)
    for found in threaded(frequency, _parts(tokens)):
        containing += found
    idf = np.log((1 + len(tokens)) / (1 + containing)) + 1
    idf[containing == 0] = 0
    idf[list(ignored)] = 0
    return idf.astype(np.float32)


def _weighted(tokens: Ragged, idf: np.ndarray) -> sparse.csr_matrix:
    """Return tf-idf rows (N, V) float32 of length 1 (or empty)."""
    weights = word_counts(tokens, len(idf))
    weights.data = (1 + np.log(weights.data)) * idf[weights.indices]
    weights.eliminate_zeros()
    return unit_rows(weights)


class SharedDocuments(Ragged):
    """A few documents that several lexical systems read: what they compute alike is computed once."""

    def __init__(self, documents: Ragged) -> None:
        super().__init__(documents.values, documents.offsets)
        self.computed: dict[str, Any] = {}


def once(documents: Ragged, name: str, compute: Callable[[], T]) -> T:
    """Return what `compute` returns; for shared documents, what it returned at the first call."""
    if not isinstance(documents, SharedDocuments):
        return compute()
    if name not in documents.computed:
        documents.computed[name] = compute()
    return documents.computed[name]


def word_counts(tokens: Ragged, vocabulary_size: int) -> sparse.csr_matrix:
    """Count each word in each document: (N, V) float64."""
    kind = np.int32 if len(tokens.values) < 2**31 else np.int64
    # Copies: summing sorts in place, and the documents' word order must be kept.
    words, ends = tokens.values.astype(kind), tokens.offsets.astype(kind)
    matrix = unchecked_rows(np.ones(len(words)), words, ends, (len(tokens), vocabulary_size))
    matrix.sum_duplicates()
    return matrix
