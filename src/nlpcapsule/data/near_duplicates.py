"""Find held-out documents that are (almost) identical to training documents, which inflate scores.

Two documents are near-duplicates if the Jaccard similarity of their sets a and b of word 5-shingles,
|a ∩ b| / |a ∪ b|, reaches a threshold t. Comparing all pairs would take hours. But b lacks at most
(1 − t) |a| shingles of a, and the other way round. So if both are sorted by rarity, the first (1 − t) |a| + 1
and the first (1 − t) |b| + 1 have a shingle in common: only documents that share one of these are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nlpcapsule.errors import ConfigError

SHINGLE_TOKENS = 5
FILLER = -1  # pads documents of fewer than 5 tokens to one shingle, which no longer document can have
_DOCUMENTS_AT_A_TIME = 256  # held-out documents compared at once, which bounds memory
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class NearDuplicates:
    """The result of `find_near_duplicates`.

    Attributes:
        pairs: (index in train, index in dev, similarity), ordered by dev and then train index.
        dev_documents: How many dev documents have a near-duplicate in train.
    """

    pairs: list[tuple[int, int, float]]
    dev_documents: int


def find_near_duplicates(
    train: Iterable[np.ndarray], dev: Iterable[np.ndarray], threshold: float = 0.8
) -> NearDuplicates:
    """Find all pairs of a training and a dev document whose word 5-shingles are nearly the same.

    Similarities are exact up to collisions of 64-bit fingerprints. Documents of fewer than 5 tokens are
    compared as a whole.

    Args:
        train: Token ids of the training documents, each (tokens,).
        dev: Token ids of the held-out documents.
        threshold: The least Jaccard similarity, above 0 and at most 1.

    Raises:
        ConfigError: If the threshold is out of its range.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold must be above 0 and at most 1; got {threshold}")
    sets = [_shingles(document) for document in train]
    count = len(sets)
    sets += [_shingles(document) for document in dev]
    if count in (0, len(sets)):
        return NearDuplicates([], 0)
    rare = _rarest(sets, threshold)  # (documents, shingles)
    holders = rare[:count].T.tocsr()
    pairs: list[tuple[int, int, float]] = []
    for start in range(count, len(sets), _DOCUMENTS_AT_A_TIME):
        candidates = (rare[start : start + _DOCUMENTS_AT_A_TIME] @ holders).tocsr()  # (chunk, train)
        candidates.sort_indices()
        for row, (first, last) in enumerate(zip(candidates.indptr, candidates.indptr[1:], strict=False)):
            for other in candidates.indices[first:last]:
                similarity = _jaccard(sets[other], sets[start + row])
                if similarity >= threshold:
                    pairs.append((int(other), start + row - count, similarity))
    return NearDuplicates(pairs, len({dev_index for _, dev_index, _ in pairs}))


def _shingles(document: np.ndarray) -> np.ndarray:
    """Return the sorted 64-bit fingerprints of a document's shingles."""
    missing = max(SHINGLE_TOKENS - len(document), 0)
    tokens = np.pad(np.asarray(document, dtype=np.int64), (0, missing), constant_values=FILLER)
    windows = np.lib.stride_tricks.sliding_window_view(_scramble(tokens.view(np.uint64)), SHINGLE_TOKENS)
    fingerprints = np.zeros(len(windows), dtype=np.uint64)
    for position in range(SHINGLE_TOKENS):
        fingerprints = fingerprints * _FACTOR + windows[:, position]
    return np.unique(_scramble(fingerprints))


def _rarest(sets: Sequence[np.ndarray], threshold: float) -> sparse.csr_matrix:
    """Return (documents, shingles): 1 for those of a document's rarest shingles that pairs have to share."""
    sizes = np.array([len(shingles) for shingles in sets])
    documents = np.repeat(np.arange(len(sets)), sizes)
    _, ids, counts = np.unique(np.concatenate(sets), return_inverse=True, return_counts=True)
    order = np.lexsort((ids, counts[ids], documents))  # rarest first within each document
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Rounding must not lose a pair that is exactly at the threshold.
    kept = order[place < (np.floor((1 - threshold) * sizes + 1e-9) + 1)[documents]]
    ones = np.ones(len(kept), dtype=np.int32)
    return sparse.csr_matrix((ones, (documents[kept], ids[kept])), shape=(len(sets), len(counts)))


def _scramble(values: np.ndarray) -> np.ndarray:
    """Apply a fixed pseudo-random bijection of 64-bit integers (multiplications and folded halves)."""
    for _ in range(2):
        values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return values ^ (values >> np.uint64(32))


def _jaccard(first: np.ndarray, second: np.ndarray) -> float:
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)
