"""Find the rows nearest to a document, labels or training documents, through an inverted index.

    p_jw = n_jw / (n_j + 1);     c_jw = log(1 + p_jw / p_w);     score_j = ⟨x, c_j⟩

x: tf-idf rows of length 1. p_w: the share of documents with word w. n_jw: documents of label j with word w,
each shared out among the document's labels (`of_labels`); n_j: all documents of label j. c_j is the label's
centroid, of which the words that tell it best are kept and scaled to length 1. There is nothing to learn, so
that rare labels are found as well as frequent ones. A document is compared only with the rows that share a
word with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from nlpcapsule.lexical.many_labels.threaded import in_threads, threaded
from nlpcapsule.lexical.sparse_rows import largest_entries, row_of, stacked_rows, transposed, unit_rows

_CENTROID_WORDS = 50  # more cost time and find hardly more labels
_SHARED_WORDS = 100  # of a label, among which the documents' words are shared out
DOCUMENT_WORDS = 30  # the words of the largest weights, which tell a document from others
_DOCUMENTS_PER_WORD, LABELS_PER_WORD = 5_000, 3_000  # those that a word weighs most in
_ROWS_AT_A_TIME = 4_096
_SCORES_AT_A_TIME = 2**22  # which bounds memory
FEWEST_AT_A_TIME = 64  # documents, in a thread
# Of centroids among the weights, and how it falls with a label's documents: chosen on held-out documents.
_CENTROID_WEIGHT, _CENTROID_POWER = 3.0, -0.25


@dataclass(frozen=True, eq=False)
class InvertedIndex:
    """Pruned rows, found by their words."""

    weights: sparse.csr_matrix  # (n, V) float32, sparse, rows of length 1 (or empty)
    rows_per_word: int = _DOCUMENTS_PER_WORD

    @classmethod
    def of_labels(
        cls, features: sparse.csr_matrix, targets: sparse.csr_matrix, words: int | None = None
    ) -> Self:
        """Index the centroids of labels, from rows (N, V) of documents and their labels (N, n).

        A document's word is shared out among its labels l in proportion to s_lw, the share that the word has
        in the sum of the label's rows: a rare label does not take the words of the frequent ones next to it.

            n_jw = Σ_{i with label j and word w} s_jw / Σ_{l of document i} s_lw

        Only the first `words` columns are indexed, all by default.
        """
        (count, width), labels = features.shape, targets.shape[1]
        by_label, holders = targets.T.tocsr(), targets.getnnz(axis=0)  # (n, N), (n,)
        parts, blocks = (range(0, total, _ROWS_AT_A_TIME) for total in (count, labels))
        if words is not None and words < width:
            whole = features
            indexed = threaded(lambda start: whole[start : start + _ROWS_AT_A_TIME, :words], parts)
            features = stacked_rows(indexed, features.shape)
        frequency = np.maximum(np.bincount(features.indices, minlength=width), 1) / count  # (V,)

        def shares(start: int) -> sparse.csr_matrix:
            sums = largest_entries(by_label[start : start + _ROWS_AT_A_TIME] @ features, _SHARED_WORDS)
            sums.data /= np.bincount(row_of(sums), sums.data)[row_of(sums)]
            return sums

        share = stacked_rows(threaded(shares, blocks), (labels, width))  # s

        def inverses(start: int) -> sparse.csr_matrix:
            rows = slice(start, start + _ROWS_AT_A_TIME)
            totals = features[rows].astype(bool).multiply(targets[rows] @ share).tocsr()
            totals.data = 1 / totals.data
            return totals

        inverse = stacked_rows(threaded(inverses, parts), (count, width))  # 1 / Σ s_lw

        def centroids(start: int) -> sparse.csr_matrix:
            rows = slice(start, start + _ROWS_AT_A_TIME)
            found = share[rows].multiply(by_label[rows] @ inverse).tocsr()
            p = found.data / (holders[rows][row_of(found)] + 1)
            found.data = np.log1p(p / frequency[found.indices])
            return unit_rows(largest_entries(found, _CENTROID_WORDS, p * found.data))

        return cls(stacked_rows(threaded(centroids, blocks), (labels, width)), LABELS_PER_WORD)

    @classmethod
    def of_documents(cls, features: sparse.csr_matrix) -> Self:
        """Index documents (N, V)."""
        starts = range(0, features.shape[0], _ROWS_AT_A_TIME)

        def chosen(start: int) -> sparse.csr_matrix:
            return unit_rows(largest_entries(features[start : start + _ROWS_AT_A_TIME], DOCUMENT_WORDS))

        return cls(stacked_rows(threaded(chosen, starts), features.shape))

    def added_to(
        self, blocks: Iterable[sparse.csr_matrix], counts: np.ndarray
    ) -> Iterator[sparse.csr_matrix]:
        """Yield w_j + 3 n_j^-¼ c_j, from the machines w of all labels, in blocks, and their documents (n,).

        A machine of few documents knows few words: the rarer a label, the more its centroid c_j tells.
        """
        scale = _CENTROID_WEIGHT * np.maximum(counts, 1).astype(np.float32) ** _CENTROID_POWER  # (n,)
        end = 0
        for block in blocks:
            start, end = end, end + block.shape[0]
            yield (block + sparse.diags(scale[start:end]) @ self.weights[start:end]).tocsr()

    @cached_property
    def _rows_by_word(self) -> sparse.csr_matrix:
        """(V, n), of each word the rows that it weighs most in."""
        return transposed(self.weights, self.rows_per_word)

    def prepare(self) -> Self:
        """Build the index, which threads would otherwise do at the same time."""
        _ = self._rows_by_word
        return self

    def nearest(self, features: sparse.csr_matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (N, K) int32 nearest to documents (N, V), nearest first, and their cosines (N, K).

        Rows without a common word follow, in their order.
        """
        documents, row_count = features.shape[0], self.weights.shape[0]
        width = min(count, row_count)
        found = np.empty((documents, width), dtype=np.int32)
        cosines = np.zeros((documents, width), dtype=np.float32)
        index = self._rows_by_word  # before the threads ask for it
        size = max(FEWEST_AT_A_TIME, _SCORES_AT_A_TIME // max(row_count, 1))

        def fill(start: int) -> None:
            for row in range(start, min(start + size, documents)):
                entries = slice(*features.indptr[row : row + 2])
                ids, scores = _contenders(index, features.indices[entries], features.data[entries], width)
                found[row], cosines[row] = _largest(ids, scores, width)

        in_threads(fill, range(0, documents, size))
        return found, cosines


def row_products(features: sparse.csr_matrix, rows: sparse.csr_matrix, chosen: np.ndarray) -> np.ndarray:
    """Return the products (N, C) of documents (N, V) with chosen rows (N, C) of a matrix (n, V)."""
    products = np.empty(chosen.shape, dtype=np.float32)

    def fill(start: int) -> None:
        document = np.zeros(features.shape[1], dtype=np.float32)  # (V,)
        for row in range(start, min(start + FEWEST_AT_A_TIME, len(chosen))):
            entries = slice(*features.indptr[row : row + 2])
            document[features.indices[entries]] = features.data[entries]
            products[row] = rows[chosen[row]] @ document
            document[features.indices[entries]] = 0

    in_threads(fill, range(0, len(chosen) if chosen.shape[1] else 0, FEWEST_AT_A_TIME))
    return products


def best_of(ids: np.ndarray, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids (N, K) of the largest values (N, C), largest first, and these; ties by id."""
    order = np.lexsort((ids, -values))[:, :count]
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(values, order, axis=1)


def _contenders(
    index: sparse.csr_matrix, words: np.ndarray, weights: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (K,) that share words with a document, among them the `width` best, and their scores (K,).

    `index` (V, n) has the rows of each word, `words` (T,) and `weights` (T,) are the document's. The scores
    are added up in an array of all rows, since a sparse product would read all entries twice. No score below
    the last of the `width` best rows that have one certain word can be among the best of all.
    """
    entries = index[words]  # (T, n)
    scores = entries.T @ weights  # (n,)
    is_enough = np.diff(entries.indptr) >= width  # (T,)
    bound = np.float32(0)
    if is_enough.any():
        word = np.argmax(np.where(is_enough, weights, 0))  # its rows are near to the document
        some = scores[entries.indices[slice(*entries.indptr[word : word + 2])]]
        bound = np.partition(some, len(some) - width)[len(some) - width]
    ids = np.flatnonzero(scores >= bound if bound > 0 else scores)
    return ids, scores[ids]


def _largest(ids: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids (K,) of the largest values and these; ties by id, filled up with others."""
    if len(values) > width:
        bound = np.partition(values, len(values) - width)[len(values) - width]
        chosen = values >= bound
        ids, values = ids[chosen], values[chosen]
    order = np.lexsort((ids, -values))[:width]
    ids, values = ids[order], values[order]
    missing = width - len(ids)
    if missing:
        others = np.setdiff1d(np.arange(width + 1), ids)[:missing]  # one of width + 1 ids may not exist
        ids, values = np.append(ids, others), np.append(values, np.zeros(missing, dtype=values.dtype))
    return ids, values
