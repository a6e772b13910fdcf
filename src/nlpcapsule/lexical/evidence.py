"""Lexical features of labels in a hybrid: a lexical system, similar documents and name matches."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ConfigError, quoted
from nlpcapsule.lexical.arrays import check_range, load_arrays, save_arrays
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS, SharedDocuments, once
from nlpcapsule.lexical.name_match import NameMatch
from nlpcapsule.lexical.neighbours import Neighbours
from nlpcapsule.lexical.omikuji import OmikujiSettings
from nlpcapsule.lexical.one_vs_rest import OneVsRestSettings
from nlpcapsule.lexical.ranker import LexicalRanker, LexicalSettings
from nlpcapsule.lexical.whole_words import WholeWords

_WORDS_FILE = "whole-words.safetensors"
_BEAM = 20  # Omikuji's: each tree then names 400 labels for 200 candidates
_BY_NAME = 0.1  # fraction of the candidates reserved for labels without examples


def evidence_settings(system: str) -> LexicalSettings:
    """Return the settings of the lexical system in a hybrid: its defaults, with separate lead features.

    "auto" is one-vs-rest, which gains half a point of P@1 over Omikuji in a hybrid (EURLEX57K). Where there
    are too many labels to train each on every document, its centroids nominate more of the true ones
    (docs/scale.md).
    """
    if system not in ("auto", "one-vs-rest", "omikuji"):
        raise ConfigError(f"unknown lexical system {quoted(system)}: expected one-vs-rest or omikuji")
    if system == "omikuji":
        return OmikujiSettings(lead_tokens=LEAD_TOKENS, beam=_BEAM)
    return OneVsRestSettings(lead_tokens=LEAD_TOKENS)


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """Lexical features fitted to the training part; with names, the ranker ranks labels with examples."""

    ranker: LexicalRanker  # nominates candidates and gives their log-odds
    neighbours: Neighbours  # the training documents
    whole_words: WholeWords | None = None  # joins word pieces to words, if the network reads pieces
    name_match: NameMatch | None = None  # the labels' names, if they have any

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels of documents and their log-odds.

        The last places are reserved for labels without examples whose names match best. The lexical system
        does not score these, so they get the lowest log-odds.
        """
        words = self.words(tokens)
        if self.name_match is None:
            return self.ranker.top(words, top_k)
        by_name = self.name_match.nominate(words, round(_BY_NAME * top_k))
        ranked, log_odds = self.ranker.top(words, top_k - by_name.shape[1])
        lowest = np.broadcast_to(log_odds[:, -1:], by_name.shape)
        labels = np.hstack([self.name_match.with_examples[ranked], by_name])
        return labels, np.hstack([log_odds, lowest])

    def names(self, tokens: Ragged, candidates: np.ndarray) -> np.ndarray | None:
        """Return how well the names of candidates match; None without label names."""
        return None if self.name_match is None else self.name_match(self.words(tokens), candidates)

    def shares(self, tokens: Ragged, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the share of similar documents that have each candidate, and the nearest one's cosine."""
        return self.neighbours.shares(self.words(tokens), candidates)

    def words(self, tokens: Ragged) -> Ragged:
        """Return the words that the lexical system reads: the tokens, or words joined from pieces."""
        whole_words = self.whole_words
        if whole_words is None:
            return tokens
        return once(tokens, "words", lambda: SharedDocuments(whole_words(tokens)))

    def save(self, folder: Path) -> None:
        """Write files into an existing folder."""
        self.ranker.save(folder)
        self.neighbours.save(folder)
        if self.whole_words is not None:
            save_arrays(folder / _WORDS_FILE, **self.whole_words.to_arrays())
        if self.name_match is not None:
            self.name_match.save(folder)

    @property
    def files(self) -> set[str]:
        """The names of the files that `save` writes."""
        words = set() if self.whole_words is None else {_WORDS_FILE}
        names = set() if self.name_match is None else {NameMatch.file}
        return self.ranker.files | {Neighbours.file} | words | names

    @classmethod
    def load(cls, system: str, folder: Path) -> Self:
        """Read the output of `save`; `system` is the lexical system's name."""
        settings = evidence_settings(system)
        whole = None
        if (folder / _WORDS_FILE).exists():
            whole = WholeWords.from_arrays(load_arrays(folder / _WORDS_FILE))
        names = NameMatch.load(folder) if (folder / NameMatch.file).exists() else None
        return cls(settings.ranker.load(settings, folder), Neighbours.load(folder), whole, names)

    def check(self, vocabulary: Sequence[str], counts: np.ndarray, document_count: int | None) -> None:
        """Raise `ModelFolderError` if the features do not fit the rest of the model.

        `counts` (n,) are the training documents of each label, `document_count` all of them, if known.
        """
        size = len(vocabulary)
        if self.neighbours.tokens is not None:
            check_range(self.neighbours.tokens.values, "tokens", 0, size - 1)
        if self.whole_words is not None:
            self.whole_words.check(vocabulary)
            size = self.whole_words.size
        label_count = len(counts)
        if self.name_match is not None:
            self.name_match.check(size, counts)
            label_count = len(self.name_match.with_examples)
        self.ranker.check(size, label_count)
        self.neighbours.check(size, counts, document_count)
