"""Document frequency and inverse document frequency of words."""

from collections.abc import Iterable, Sequence

import numpy as np


def document_frequency(
    texts: Iterable[Sequence[int] | np.ndarray], vocabulary_size: int
) -> tuple[int, np.ndarray]:
    """Return N, the number of texts of token ids, and N_w (V,), the number of those that contain word w."""
    count, containing = 0, np.zeros(vocabulary_size, dtype=np.int64)
    for row in texts:
        count += 1
        containing[np.unique(np.asarray(row, dtype=np.int64))] += 1
    return count, containing


def inverse_document_frequency(
    texts: Iterable[Sequence[int] | np.ndarray], vocabulary_size: int
) -> np.ndarray:
    """Return idf(w) = log((1 + N) / (1 + N_w)) (V,) float32: 0 for a word in every text."""
    count, containing = document_frequency(texts, vocabulary_size)
    return np.log((1 + count) / (1 + containing)).astype(np.float32)
