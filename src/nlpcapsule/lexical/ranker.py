"""The interface of lexical systems: fit on tokens, rank labels, save to files."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.registry import find_system


class LexicalSettings(SystemSettings):
    """Settings that all lexical systems share."""

    @property
    def ranker(self) -> type["LexicalRanker"]:
        """The class of the system, which fits and loads it."""
        ranker = find_system(self.name).lexical
        assert ranker is not None
        return ranker


@dataclass(frozen=True)
class Fitting:
    """Training inputs other than settings and documents."""

    words: list[str]  # the vocabulary, by token id
    label_count: int  # n
    ignored: tuple[int, ...]  # ids of tokens that are not words: padding and the unknown word
    seed: int
    checkpoint: Path  # a folder, perhaps yet to be made, for finished parts, to resume a stopped training
    advance: Callable[[int, int], None] = lambda done, total: None  # gets parts done and total parts

    def fingerprint(self, settings: LexicalSettings, documents: EncodedDocuments) -> str:
        """Return a name for finished parts that depends on all inputs of the training."""
        data, chosen = documents.fingerprint(), settings.model_dump_json()
        shaped_by = (data, chosen, len(self.words), self.label_count, self.ignored, self.seed)
        return hashlib.sha256(repr(shaped_by).encode()).hexdigest()[:16]


class LexicalRanker(ABC):
    """Protocol of fitted lexical systems. A document's result depends on that document alone."""

    file: ClassVar[str]  # the name of the file that `save` writes

    @classmethod
    @abstractmethod
    def fit(cls, settings: Any, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Train on documents; the same seed gives the same system."""

    @abstractmethod
    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels (N, K) int64 of documents, best first, and their log-odds (N, K) float64.

        K is `top_k`, or n where there are fewer labels. Ties are broken by label id.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write files into an existing folder, none of which can run code when it is read."""

    @property
    def files(self) -> set[str]:
        """The files that `save` writes, relative to its folder; a model folder with others is refused."""
        return {self.file}

    @classmethod
    @abstractmethod
    def load(cls, settings: Any, folder: Path) -> Self:
        """Read the output of `save`, which may be damaged: check it before compiled code reads it."""

    def check(self, vocabulary_size: int, label_count: int) -> None:  # noqa: B027 - a system may have nothing to check
        """Raise `ModelFolderError` if a loaded system does not fit the tokenizer and the labels."""


def top_of_parts(parts: Iterable[np.ndarray], top_k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what `LexicalRanker.top` does, from the scores (B, n) of a few documents at a time."""
    labels, scores = [np.zeros((0, 0), dtype=np.int64)], [np.zeros((0, 0))]
    for part in parts:
        labels.append(top_columns(part, top_k))
        scores.append(np.take_along_axis(part, labels[-1], axis=1))
    return np.concatenate(labels[1:] or labels), np.concatenate(scores[1:] or scores, dtype=np.float64)


def label_matrix(labels: Ragged, label_count: int) -> sparse.csr_matrix:
    """Return (N, n) float32 of zeros and ones, without ids that training never saw."""
    rows = np.repeat(np.arange(len(labels)), labels.lengths)
    known = labels.values < label_count
    ones = np.ones(int(known.sum()), dtype=np.float32)
    matrix = sparse.csr_matrix((ones, (rows[known], labels.values[known])), shape=(len(labels), label_count))
    matrix.data[:] = 1  # a label that a document lists twice was summed
    return matrix
