"""What every lexical system offers: it learns from tokens, ranks labels, and keeps itself as files."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged


class LexicalSettings(SystemSettings):
    """What all of them share."""


@dataclass(frozen=True)
class Fitting:
    """What a training needs beside settings and documents.

    Attributes:
        words: The vocabulary, by token id.
        label_count: n.
        ignored: Token ids that are no words: padding and the unknown word.
        seed: The seed.
        checkpoint: A folder for finished parts (trees, blocks of labels), so that a stopped training goes on.
        advance: Told (parts done, parts in all), for progress.
    """

    words: list[str]
    label_count: int
    ignored: tuple[int, ...]
    seed: int
    checkpoint: Path
    advance: Callable[[int, int], None] = lambda done, total: None

    def fingerprint(self, settings: LexicalSettings, documents: EncodedDocuments) -> str:
        """Names finished parts after all that shapes them, so that no other training's parts are taken."""
        shaped_by = (
            documents.fingerprint(),
            settings.model_dump_json(),
            len(self.words),
            self.label_count,
            self.ignored,
            self.seed,
        )
        return hashlib.sha256(repr(shaped_by).encode()).hexdigest()[:16]


class LexicalRanker(ABC):
    """A fitted system. A document's result depends on that document alone."""

    settings_type: ClassVar[Any]

    @classmethod
    @abstractmethod
    def fit(cls, settings: Any, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Learns from documents; the same seed gives the same system."""

    @abstractmethod
    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best labels of documents.

        Returns:
            Label ids (N, K) int64, best first, and their log-odds (N, K) float64; K is `top_k`, or n where
            there are fewer labels. Equal scores go by label id.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes files into a folder that exists, none of which can run code when it is read."""

    @classmethod
    @abstractmethod
    def load(cls, settings: Any, folder: Path) -> Self:
        """Reads what `save` wrote.

        Files may be damaged or crafted: whatever compiled code reads is checked before it does.
        """

    def check(self, vocabulary_size: int, label_count: int) -> None:  # noqa: B027 - a system may have nothing to check
        """Refuse a loaded system that does not fit the tokenizer and the labels it was found with.

        Raises:
            ModelFolderError: It does not.
        """


def label_matrix(labels: Ragged, label_count: int) -> sparse.csr_matrix:
    """(N, n) float32 of zeros and ones; ids that training never saw are left out."""
    rows = np.repeat(np.arange(len(labels)), labels.lengths)
    known = labels.values < label_count
    ones = np.ones(int(known.sum()), dtype=np.float32)
    matrix = sparse.csr_matrix((ones, (rows[known], labels.values[known])), shape=(len(labels), label_count))
    matrix.data[:] = 1  # a label that a document names twice was added up
    return matrix
