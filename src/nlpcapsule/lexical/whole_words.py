"""Word pieces put together again, for systems that count words.

A pretrained transformer reads pieces: "re", "##gula", "##tion". As a bag they say little; a linear model
wants the word that they make up. A word is known by a 64-bit hash of its pieces, so no text is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from nlpcapsule.dataset.ragged import Ragged

UNKNOWN = 0  # the id of words that training did not see often enough
_FEWEST = 2  # occurrences of a word in training
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits well mixed


@dataclass(frozen=True, eq=False)
class WholeWords:
    """Piece ids → word ids.

    Attributes:
        continues: (V,) bool, whether a piece goes on with the word before it.
        hashes: (W,) uint64, sorted; the word hashes[k] has the id k + 1.
    """

    continues: np.ndarray
    hashes: np.ndarray

    @classmethod
    def fit(cls, tokens: Ragged, vocabulary: list[str]) -> Self | None:
        """Learns the words of the training part; None where tokens are words already."""
        continues = _continuing(vocabulary)
        if not continues.any():
            return None
        hashes, counts = np.unique(_words(tokens, continues)[0], return_counts=True)
        return cls(continues, hashes[counts >= _FEWEST])

    @property
    def size(self) -> int:
        """Number of words, the unknown one included."""
        return len(self.hashes) + 1

    def __call__(self, tokens: Ragged) -> Ragged:
        """Rows of piece ids → rows of word ids."""
        words, offsets = _words(tokens, self.continues)
        places = np.searchsorted(self.hashes, words).clip(max=max(len(self.hashes) - 1, 0))
        known = self.hashes[places] == words if len(self.hashes) else np.zeros(len(words), dtype=bool)
        return Ragged(np.where(known, places + 1, UNKNOWN), offsets)


def _continuing(vocabulary: list[str]) -> np.ndarray:
    """(V,) by the marks that tokenizers use: "##" inside a word, or else "Ġ" or "▁" at its start."""
    if any(piece.startswith("##") for piece in vocabulary):
        return np.array([piece.startswith("##") for piece in vocabulary])
    starts = np.array([piece.startswith(("Ġ", "▁", "<", "[")) for piece in vocabulary])
    return ~starts if any(piece.startswith(("Ġ", "▁")) for piece in vocabulary) else np.zeros_like(starts)


def _words(tokens: Ragged, continues: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of all words, row after row, and where rows begin and end."""
    if not len(tokens.values):
        return np.zeros(0, dtype=np.uint64), np.zeros_like(tokens.offsets)
    begins = ~continues[tokens.values]
    begins[tokens.offsets[:-1][tokens.lengths > 0]] = True  # a row's first piece begins a word in any case
    starts = np.flatnonzero(begins)
    word_of = np.cumsum(begins) - 1
    place = (np.arange(len(word_of)) - starts[word_of]).astype(np.uint64)  # of a piece in its word
    pieces = (tokens.values.astype(np.uint64) + np.uint64(1)) * _FACTOR
    mixed = (pieces ^ (pieces >> np.uint64(29))) * (np.uint64(2) * place + np.uint64(1)) * _FACTOR
    hashes = np.add.reduceat(mixed ^ (mixed >> np.uint64(32)), starts)
    return hashes, np.concatenate([[0], np.cumsum(begins)])[tokens.offsets]
