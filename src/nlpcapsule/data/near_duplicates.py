"""Find held-out documents that are (almost) identical to training documents.

Such documents inflate scores. Two documents are near-duplicates if the Jaccard similarity of their word
5-shingles reaches a threshold. Comparing all pairs would take hours, so MinHash with banding proposes
candidates and only those are compared exactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np

from nlpcapsule.errors import ConfigError

SHINGLE_TOKENS = 5
HASHES = 128
ACCEPTED_MISS_RATE = 1e-3
DOCUMENTS_PER_CHUNK = 256
_KEPT = 4_096  # dev documents whose shingles are kept for the next comparison
SEED = 20190728
FILLER = -1  # pads documents of fewer than 5 tokens to one shingle, which no longer document can have


def find_near_duplicates(
    train: Iterable[np.ndarray], dev: Iterable[np.ndarray], threshold: float = 0.8
) -> list[tuple[int, int, float]]:
    """Find the pairs of a training and a dev document, each (tokens,), with nearly the same word 5-shingles.

    Returns the index in train, the index in dev and the similarity, ordered by dev, then train. Identical
    documents are always found; a pair at the threshold, the least Jaccard similarity, is missed in less than
    one of a thousand cases. Similarities are exact up to collisions of 64-bit fingerprints. Documents of
    fewer than 5 tokens are compared as a whole.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold must be above 0 and at most 1; got {threshold}")
    dev = list(dev)
    rows = _rows_per_band(threshold)
    parts = [_band_keys(part, rows) for part in _chunks(dev)] or [_band_keys([], rows)]
    keys = np.hstack(parts)  # (bands, M)
    order = np.argsort(keys, axis=1, kind="stable").astype(np.int32)
    bands = list(zip(order, np.take_along_axis(keys, order, axis=1), strict=True))

    @lru_cache(maxsize=_KEPT)
    def dev_shingles(index: int) -> np.ndarray:
        return np.unique(_shingles([dev[index]])[0])

    pairs: list[tuple[int, int, float]] = []
    start = 0
    for chunk in _chunks(train):  # training documents are many, and never all in memory
        for place, candidates in enumerate(_candidates(_band_keys(chunk, rows), bands)):
            if not len(candidates):
                continue
            shingles = np.unique(_shingles([chunk[place]])[0])
            similarities = _jaccard(shingles, [dev_shingles(int(index)) for index in candidates])
            for index, similarity in zip(candidates.tolist(), similarities.tolist(), strict=True):
                if similarity >= threshold:
                    pairs.append((start + place, index, similarity))
        start += len(chunk)
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def _chunks(documents: Iterable[np.ndarray]) -> Iterator[list[np.ndarray]]:
    remaining = iter(documents)
    return iter(lambda: list(islice(remaining, DOCUMENTS_PER_CHUNK)), [])


def _rows_per_band(threshold: float) -> int:
    """Return the most selective banding that still proposes nearly every pair at the threshold.

    With b bands of r rows, a pair of similarity s shares no band with probability (1 - s^r)^b.
    """
    for rows in range(8, 1, -1):
        if (1 - threshold**rows) ** (HASHES // rows) <= ACCEPTED_MISS_RATE:
            return rows
    return 1


def _candidates(keys: np.ndarray, bands: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[np.ndarray]:
    """Yield, for each column of keys (bands, B), the sorted indices of dev documents that share a band.

    `bands` are, for each band, the dev documents in the order of their keys, and the sorted keys.
    """
    limits = [
        (np.searchsorted(known, wanted, "left"), np.searchsorted(known, wanted, "right"))
        for wanted, (_, known) in zip(keys, bands, strict=True)
    ]
    for document in range(keys.shape[1]):
        places = zip(bands, limits, strict=True)
        found = [order[first[document] : last[document]] for (order, _), (first, last) in places]
        yield np.unique(np.concatenate(found))


def _band_keys(documents: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Return a 64-bit key for each band of `rows` signature entries of each document, (bands, N)."""
    bands = HASHES // rows
    entries = _signatures(documents)[:, : bands * rows].reshape(len(documents), bands, rows)
    keys = np.zeros((len(documents), bands), dtype=np.uint64)
    for row in range(rows):
        keys = _scramble(keys ^ entries[:, :, row])
    return np.ascontiguousarray(keys.T)


def _signatures(documents: Sequence[np.ndarray]) -> np.ndarray:
    """Return MinHash signatures (N, HASHES) uint32: each document's first shingle in HASHES orderings."""
    multipliers = np.random.default_rng(SEED).integers(0, 2**63, HASHES, dtype=np.uint64) * 2 + 1
    signatures = np.empty((len(documents), HASHES), dtype=np.uint32)
    for start in range(0, len(documents), DOCUMENTS_PER_CHUNK):
        chunk = documents[start : start + DOCUMENTS_PER_CHUNK]
        shingles, starts = _shingles(chunk)
        for hash_index, multiplier in enumerate(multipliers):
            smallest = np.minimum.reduceat(shingles * multiplier, starts)  # (chunk,)
            signatures[start : start + len(chunk), hash_index] = smallest >> np.uint64(32)
    return signatures


def _shingles(documents: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the fingerprints of all shingles, document by document, and the documents' offsets."""
    filler = np.full(SHINGLE_TOKENS, FILLER)
    padded = [
        document if len(document) >= SHINGLE_TOKENS else np.append(document, filler)[:SHINGLE_TOKENS]
        for document in documents
    ]
    lengths = np.array([len(document) for document in padded])
    tokens = _scramble(np.concatenate(padded).astype(np.int64).view(np.uint64))  # (all tokens,)
    windows = len(tokens) - SHINGLE_TOKENS + 1
    fingerprints = np.zeros(windows, dtype=np.uint64)
    for position in range(SHINGLE_TOKENS):
        fingerprints = fingerprints * np.uint64(0x9E3779B97F4A7C15) + tokens[position : position + windows]
    ends = np.cumsum(lengths)
    # Leave out the windows that reach from one document into the next.
    inside = np.ones(len(tokens), dtype=bool)
    for back in range(1, SHINGLE_TOKENS):
        inside[ends - back] = False
    counts = lengths - SHINGLE_TOKENS + 1
    return _scramble(fingerprints[inside[:windows]]), np.cumsum(counts) - counts


def _scramble(values: np.ndarray) -> np.ndarray:
    """Apply a fixed pseudo-random bijection of 64-bit integers (multiplications and folded halves)."""
    for _ in range(2):
        values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return values ^ (values >> np.uint64(32))


def _jaccard(shingles: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Return the Jaccard similarity of one sorted set of shingles to each of several."""
    if not others:
        return np.empty(0)
    sizes = np.array([len(other) for other in others])
    joined = np.concatenate(others)
    places = np.minimum(np.searchsorted(shingles, joined), len(shingles) - 1)
    shared = np.add.reduceat(shingles[places] == joined, np.cumsum(sizes) - sizes, dtype=np.int64)
    return shared / (len(shingles) + sizes - shared)
