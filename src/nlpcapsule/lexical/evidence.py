"""What words say of labels, beside a network: a lexical system, and similar training documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from nlpcapsule.dataset.ragged import Ragged
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.lexical.build import evidence_settings, lexical_system
from nlpcapsule.lexical.neighbours import Neighbours
from nlpcapsule.lexical.ranker import LexicalRanker
from nlpcapsule.lexical.whole_words import WholeWords

_WORDS_FILE = "whole-words.safetensors"


class WordEvidence(Protocol):
    """What a network is joined with."""

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best labels of documents and their log-odds, as `LexicalRanker.top`."""
        ...

    def shares(self, tokens: Ragged, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far similar documents bear candidates out, as `Neighbours.shares`."""
        ...

    def save(self, folder: Path) -> None:
        """Writes files into a folder that exists."""
        ...


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """Evidence learned from the training part.

    Attributes:
        ranker: Nominates candidates and gives their log-odds.
        neighbours: The training documents.
        whole_words: Puts word pieces together first, where the network reads pieces.
    """

    ranker: LexicalRanker
    neighbours: Neighbours
    whole_words: WholeWords | None = None

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best labels of documents and their log-odds."""
        return self.ranker.top(self._words(tokens), top_k)

    def shares(self, tokens: Ragged, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far similar documents bear candidates out, and how near the nearest is."""
        return self.neighbours.shares(self._words(tokens), candidates)

    def _words(self, tokens: Ragged) -> Ragged:
        return tokens if self.whole_words is None else self.whole_words(tokens)

    def save(self, folder: Path) -> None:
        """Writes files into a folder that exists."""
        self.ranker.save(folder)
        self.neighbours.save(folder)
        if self.whole_words is not None:
            whole = self.whole_words
            save_arrays(folder / _WORDS_FILE, continues=whole.continues, hashes=whole.hashes)

    @classmethod
    def load(cls, system: str, folder: Path) -> Self:
        """Reads what `save` wrote; `system` is the lexical system's name."""
        settings = evidence_settings(system)
        whole = None
        if (folder / _WORDS_FILE).exists():
            arrays = load_arrays(folder / _WORDS_FILE)
            whole = WholeWords(arrays["continues"], arrays["hashes"])
        return cls(lexical_system(settings).load(settings, folder), Neighbours.load(folder), whole)
