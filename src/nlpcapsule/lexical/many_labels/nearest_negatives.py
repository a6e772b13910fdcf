"""Train a label's linear model on its own documents and on the nearest others, for data with many labels.

A label with three documents learns nothing from a hundred thousand documents about something else. Its
negatives are the documents that its centroid is near to without their having it, for which it competes when
labels are ranked, and a sample of all others, weighted to count as many as these are: the loss is about that
of all documents, and the margins of labels can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from nlpcapsule.lexical.many_labels.inverted_index import InvertedIndex
from nlpcapsule.lexical.many_labels.pool import in_processes

_NOMINATED = 100  # labels that a document may be a negative of
_MOST_SEARCHED = 50_000  # documents among which the nearest are sought; of more, a sample
_LABELS_PER_SEARCHED = 2  # where there are so many labels that the sample has to be larger
_LARGEST_BITS = 2**31 - 1
_AT_A_TIME = 256  # documents, in a process
_FEWEST = 300  # nearest negatives of a label, if there are as many
_PER_HOLDER = 5  # nearest negatives per document with the label, if these are more
MOST = 10_000  # documents with a label, and negatives, that it is trained on
_SAMPLED = 500  # documents that are negatives of every label that they do not have


@dataclass(frozen=True)
class NearestNegatives:
    """The documents that each of some labels is trained on, without its own."""

    documents: np.ndarray  # (total,) int32, label by label, nearest first
    offsets: np.ndarray  # (n + 1,) where each label's documents begin
    document_count: int  # N
    sample: np.ndarray  # (S,) documents, ascending, that are negatives of all labels

    @classmethod
    def find(
        cls, centroids: InvertedIndex, features: sparse.csr_matrix, targets: sparse.csr_matrix, seed: int
    ) -> Self:
        """Find the documents (N, V) that labels are nominated for in error; `targets` is (N, n)."""
        count, label_count = targets.shape
        generator = np.random.default_rng(seed)
        sample = np.sort(generator.choice(count, min(_SAMPLED, count), replace=False))
        searched = np.arange(count, dtype=np.int32)
        most = max(_MOST_SEARCHED, label_count // _LABELS_PER_SEARCHED)
        if count > most:
            searched = np.sort(generator.choice(searched, most, replace=False))
        own = targets.tocsr()
        centroids.prepare()
        starts = range(0, len(searched), _AT_A_TIME)
        tasks = ((searched[start : start + _AT_A_TIME], centroids, features, own) for start in starts)
        parts = in_processes(_wrong, tasks, len(starts))
        labels, rows, cosines = (np.concatenate(column) for column in zip(*parts, strict=True))
        # Positive floats are in the order of their bits, so label and cosine are one number to sort by. Of
        # equal ones the first is nearer: `rows` ascends.
        key = (labels.astype(np.int64) << 32) | (_LARGEST_BITS - cosines.view(np.int32))
        order = np.argsort(key, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=label_count))])
        return cls(rows[order], offsets, count, sample)

    def part(self, start: int, end: int) -> NearestNegatives:
        """Return those of the labels from `start` to `end`, for another process."""
        offsets = self.offsets[start : end + 1]
        documents = self.documents[offsets[0] : offsets[-1]]
        return NearestNegatives(documents, offsets - offsets[0], self.document_count, self.sample)

    def of(self, label: int, holders: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the negatives of a label that the documents `holders` have.

        These are the nearest documents, and of `sample` those that (S,) says; each of them counts as many.
        """
        nearest = self.documents[self.offsets[label] : self.offsets[label + 1]]
        chosen = nearest[: min(max(_FEWEST, _PER_HOLDER * len(holders)), MOST)]
        known = np.concatenate([chosen, holders])
        place = np.searchsorted(self.sample, known).clip(max=len(self.sample) - 1)
        is_sampled = np.ones(len(self.sample), dtype=bool)
        is_sampled[place[self.sample[place] == known]] = False
        others = self.document_count - len(chosen) - len(holders)
        return chosen, is_sampled, others / max(int(is_sampled.sum()), 1)


def _wrong(
    rows: np.ndarray, centroids: InvertedIndex, features: sparse.csr_matrix, own: sparse.csr_matrix
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the labels near to documents that do not have them, the documents, and the cosines."""
    labels, cosines = centroids.nearest(features[rows], _NOMINATED)  # (N', K)
    owned, first = own[rows], np.arange(len(rows), dtype=np.int64) * own.shape[1]
    pairs = first[:, None] + labels
    wrong = ~np.isin(pairs, np.repeat(first, np.diff(owned.indptr)) + owned.indices) & (cosines > 0)
    return labels[wrong], np.repeat(rows, wrong.sum(axis=1)), cosines[wrong]
