"""Score labels by the labels of the nearest training documents.

    share_j = Σ_{i among the K nearest, j in y_i} cos(x, x_i)^p  /  Σ_{i among the K nearest} cos(x, x_i)^p

x: tf-idf rows of length 1. A near copy, such as a law that amends another, is more informative than any model
of its labels, even for labels with a single example.

All training documents are compared up to `MOST_EXACT` of them. Among more, an inverted index of their most
informative words finds the contenders, whose cosines are then exact.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import array_to_text, check_array, load_arrays, save_arrays, text_to_array
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.many_labels.inverted_index import DOCUMENT_WORDS, InvertedIndex, best_of, row_products
from nlpcapsule.lexical.ranker import label_matrix
from nlpcapsule.lexical.sparse_rows import DenseProducts, in_parts, largest_entries
from nlpcapsule.strict_json import parse_json

NEAREST = 20  # K
MOST_EXACT = 100_000  # training documents that are all compared
_CONTENDERS = 200  # documents that the index finds
SHARPNESS = 6  # p: the nearer of two neighbours counts far more
_NUMBERS_AT_A_TIME = 2**23  # values computed at once, which bounds memory
_FEW_NUMBERS = 2**16  # values that are cleared sooner than labels are sorted
_WITH_INDEX = 8_192  # documents at a time where an index finds contenders


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The training part, ready to be searched."""

    file: ClassVar[str] = "neighbours.safetensors"

    bag: BagOfWords  # turns tokens into features
    documents: sparse.csr_matrix  # (N, V) float32, sparse, rows of length 1
    labels: sparse.csr_matrix  # (N, n) float32, sparse, of zeros and ones
    index: InvertedIndex | None = None  # finds contenders; None compares with all documents
    ids: Sequence[str | None] | None = None  # of the first documents; None for one without
    tokens: Ragged | None = None  # ids of the documents' tokens, for learning further; None: not kept

    @classmethod
    def fit(
        cls,
        documents: EncodedDocuments,
        vocabulary_size: int,
        label_count: int,
        ignored: tuple[int, ...] = (),
        ids: Sequence[str | None] | None = None,
    ) -> Self:
        """Store the training part; `ignored` are ids of tokens that are not words, `ids` name documents."""
        bag = BagOfWords.fit(documents.tokens, vocabulary_size, ignored)
        rows, labels = bag.rows(documents.tokens), label_matrix(documents.labels, label_count)
        index = InvertedIndex.of_documents(rows) if len(documents) > MOST_EXACT else None
        return cls(bag, rows, labels, index, ids)

    @cached_property
    def _cosines(self) -> DenseProducts:
        return DenseProducts(self.documents)

    def nearest(self, tokens: Ragged) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest training documents (N, K) by row, nearest first, and their cosines (N, K)."""
        best, cosines = self._nearest(self.bag.rows(tokens))
        return best, cosines.clip(0, 1)

    def name_of(self, row: int) -> str:
        """Return the identifier of a training document, or its row where it is not known."""
        known = self.ids[row] if self.ids is not None and row < len(self.ids) else None
        return f"row {row + 1}" if known is None else known

    def shares(self, tokens: Ragged, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted share (N, C) of the nearest training documents that have each candidate (N, C).

        Shares are between 0 and 1. Also returns (N,) each document's cosine with its nearest neighbour.
        """
        features = self.bag.rows(tokens)  # (N, V)
        shares = np.zeros(candidates.shape)
        nearest = np.zeros(len(tokens))
        chunk = _WITH_INDEX if self.index else max(1, _NUMBERS_AT_A_TIME // self.documents.shape[0])
        for rows, part in in_parts(features, chunk):
            best, cosines = self._nearest(part)  # (chunk, K)
            weights = cosines.clip(0, 1).astype(np.float64) ** SHARPNESS
            nearest[rows] = cosines[:, 0]
            given = self._weighted_labels(best, weights, candidates[rows])  # (chunk, C)
            shares[rows] = given / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        return shares.clip(0, 1), nearest

    def _nearest(self, features: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return the training documents (N, K) nearest to rows (N, V), nearest first, and their cosines."""
        if self.index is None:
            cosines = self._cosines(features)  # (N, training documents)
            best = top_columns(cosines, NEAREST)
            return best, np.take_along_axis(cosines, best, axis=1)
        contenders, _ = self.index.nearest(largest_entries(features, DOCUMENT_WORDS), _CONTENDERS)  # (N, C)
        return best_of(contenders, row_products(features, self.documents, contenders), NEAREST)

    def _weighted_labels(
        self, documents: np.ndarray, weights: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray:
        """Sum the weights (N, K) of those documents (N, K) that have each candidate: (N, C)."""
        starts = self.labels.indptr[documents]  # (N, K)
        lengths = (self.labels.indptr[documents + 1] - starts).ravel()
        skipped = starts.ravel() - np.cumsum(lengths) + lengths  # entries of other documents before
        given = self.labels.indices[np.repeat(skipped, lengths) + np.arange(lengths.sum())]  # (all labels,)
        first = np.arange(len(documents), dtype=np.int64)[:, None] * self.labels.shape[1]  # (N, 1)
        own = np.repeat(np.broadcast_to(first, documents.shape), lengths)
        wanted, count = first + candidates, len(documents) * self.labels.shape[1]  # (N, C)
        if count <= _FEW_NUMBERS:
            return np.bincount(own + given, np.repeat(weights, lengths), minlength=count)[wanted]
        found, vote = np.unique(own + given, return_inverse=True)
        if not len(found):
            return np.zeros(candidates.shape)
        votes = np.bincount(vote, np.repeat(weights, lengths))
        places = np.searchsorted(found, wanted).clip(max=len(found) - 1)
        return np.where(found[places] == wanted, votes[places], 0.0)

    def save(self, folder: Path) -> None:
        """Write one file."""
        kept = {} if self.tokens is None else ragged_arrays(self.tokens)
        if self.ids is not None:
            kept["ids"] = text_to_array(json.dumps(list(self.ids), ensure_ascii=False))
        if self.index is not None:
            kept["index"] = self.index.weights
        kept |= {"idf": self.bag.idf, "documents": self.documents, "labels": self.labels}
        save_arrays(folder / self.file, **kept)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the output of `save`."""
        arrays = load_arrays(folder / cls.file)
        index = InvertedIndex(arrays["index"]) if "index" in arrays else None
        ids = parse_json(array_to_text(arrays["ids"], "ids")) if "ids" in arrays else None
        tokens = ragged_from_arrays(arrays) if "tokens" in arrays else None
        return cls(BagOfWords(arrays["idf"]), arrays["documents"], arrays["labels"], index, ids, tokens)

    def check(self, vocabulary_size: int, counts: np.ndarray, document_count: int | None) -> None:
        """Raise `ModelFolderError` if the documents are not those that the model was trained on.

        `counts` (n,) are the training documents of each label, `document_count` all of them, if known.
        """
        self.bag.check(vocabulary_size)
        rows = self.documents.shape[0] if document_count is None else document_count
        check_array(self.documents, "documents", (rows, vocabulary_size))
        check_array(self.labels, "labels", (rows, len(counts)))
        if self.index is not None:
            check_array(self.index.weights, "index", (rows, vocabulary_size))
        found = np.bincount(self.labels.indices, minlength=len(counts))
        if not (self.labels.data == 1).all() or not np.array_equal(found, counts):
            raise ModelFolderError("the training documents do not have the labels that labels.json counts")
        if self.ids is not None and not (
            isinstance(self.ids, Sequence)
            and len(self.ids) <= rows  # documents that are added later may have none
            and all(name is None or isinstance(name, str) for name in self.ids)
        ):
            raise ModelFolderError(f"expected identifiers of at most {rows} training documents")
        if self.tokens is not None and len(self.tokens) != rows:
            raise ModelFolderError(f"tokens of {len(self.tokens)} documents are kept, not of {rows}")


def ragged_arrays(tokens: Ragged) -> dict[str, np.ndarray]:
    """Return the arrays to save; token ids take two bytes where they fit."""
    is_small = tokens.values.max(initial=0) < 2**16
    return {
        "tokens": tokens.values.astype(np.uint16 if is_small else np.int32),
        "token_offsets": tokens.offsets,
    }


def ragged_from_arrays(arrays: Mapping[str, Any]) -> Ragged:
    """Create token ids from the output of `ragged_arrays`; raise `ModelFolderError` if it is damaged."""
    values, offsets = arrays["tokens"], arrays.get("token_offsets")
    check_array(values, "tokens", (values.size,), "iu")
    rows = 0 if offsets is None else offsets.size
    check_array(offsets, "token_offsets", (rows,), "i")
    assert offsets is not None
    is_ascending = (
        rows > 0 and offsets[0] == 0 and offsets[-1] == len(values) and (np.diff(offsets) >= 0).all()
    )
    if not is_ascending:
        raise ModelFolderError("token_offsets do not ascend from 0 to the number of tokens")
    return Ragged(values.astype(np.int32), offsets.astype(np.int64))
