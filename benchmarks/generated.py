"""Generate label data of any size: a Zipf tail of labels, shared words, a stated ceiling.

Each label has a dozen topic words, drawn from a vocabulary that all labels share, so that no word alone
identifies a label. A document has a few labels; the text holds some topic words of each, and common words
between them. A part of the labels leaves no word in the text: only chance finds those, which is
the ceiling of recall. The first label of a document always leaves its words, so the ceiling of P@1 is 1.

Labels are dealt in turn as well as drawn, so that each has a document, most of them one or a few.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np

from nlpcapsule.atomic_files import atomic_text
from nlpcapsule.data.documents import Document
from nlpcapsule.processes import pool_options, starting_workers
from nlpcapsule.threads import thread_count

_TOPIC_WORDS = 12  # of a label
_WORDS_PER_LABEL = 8  # draws from them in a document
_AT_A_TIME = 1_000  # documents drawn together


@dataclass(frozen=True)
class GeneratedLabels:
    """A made-up data set; the same settings generate the same documents."""

    labels: int = 50_000
    documents: int = 60_000
    vocabulary: int = 40_000  # topic words shared by all labels
    common_words: int = 30  # words per document that say nothing about its labels
    labels_per_document: float = 4.0  # on average, at least 1 and those that are dealt
    tail: float = 0.8  # exponent of the labels' Zipf distribution
    silent: float = 0.03  # probability that a label other than the first leaves no word
    seed: int = 1
    first: int = 0  # the number of the first document

    @property
    def recall_ceiling(self) -> float:
        """The share of labels that can be found from the text, on average."""
        return 1 - self.silent * (1 - 1 / self.labels_per_document)

    @property
    def precision_ceiling(self) -> float:
        """The P@1 of a system that knows all topic words: one label of each document leaves its words."""
        return 1.0

    def others(self, documents: int) -> Self:
        """Return further documents of the same labels, which follow these."""
        return replace(self, documents=documents, first=self.first + self.documents)

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents, which are never all in memory."""
        for start in self._starts():
            yield from self._part(start)

    def write(self, path: Path) -> None:
        """Write the documents as JSON Lines; all cores generate them."""
        import joblib

        parts = joblib.Parallel(n_jobs=thread_count(), return_as="generator", **pool_options())
        with atomic_text(path) as file:
            with starting_workers():
                texts = parts(joblib.delayed(self._lines)(start) for start in self._starts())
            file.writelines(texts)

    def _starts(self) -> range:
        return range(self.first, self.first + self.documents, _AT_A_TIME)

    def _lines(self, start: int) -> str:
        rows = ({"id": doc.id, "text": doc.text, "labels": doc.labels} for doc in self._part(start))
        return "".join(json.dumps(row) + "\n" for row in rows)

    def _part(self, start: int) -> Iterator[Document]:
        """Yield the documents of a part, which has a random generator of its own."""
        count = min(_AT_A_TIME, self.first + self.documents - start)
        generator = np.random.default_rng([self.seed, start])
        topics, order = _topics(self.labels, self.vocabulary, self.seed)  # (n, 12), (n,)
        per_document = self.labels / max(self.documents, self.first)
        dealt = (np.arange(start, start + count + 1) * per_document).astype(np.int64)
        rest = max(0.0, self.labels_per_document - 1 - per_document)
        sizes = 1 + generator.poisson(rest, count)
        drawn = np.searchsorted(_zipf(self.labels, self.tail), generator.random(sizes.sum()))
        ends = np.concatenate([[0], np.cumsum(sizes)])
        noise = np.searchsorted(
            _zipf(self.vocabulary // 10, 1.0), generator.random((count, self.common_words))
        )
        bounds = zip(pairwise(ends.tolist()), pairwise(dealt.tolist()), strict=True)
        for row, ((begin, end), (low, high)) in enumerate(bounds):
            in_turn = order[np.arange(low, high) % self.labels]
            own = list(dict.fromkeys([*drawn[begin:end].tolist(), *in_turn.tolist()]))
            yield self._document(start + row, own, noise[row], topics, generator)

    def _document(
        self,
        number: int,
        labels: list[int],
        noise: np.ndarray,
        topics: np.ndarray,
        generator: np.random.Generator,
    ) -> Document:
        speaks = generator.random(len(labels)) >= self.silent
        speaks[0] = True
        places = generator.integers(0, _TOPIC_WORDS, (len(labels), _WORDS_PER_LABEL))
        words = np.take_along_axis(topics[labels], places, axis=1)[speaks].ravel()
        text = [f"t{word}" for word in words.tolist()] + [f"c{word}" for word in noise.tolist()]
        order = generator.permutation(len(text)).tolist()
        names = tuple(f"label-{label}" for label in labels)
        return Document(text=" ".join([text[i] for i in order]), labels=names, id=str(number))


@lru_cache(maxsize=2)
def _topics(labels: int, vocabulary: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the topic words (n, 12) of each label and the order (n,) in which labels are dealt.

    Common topic words belong to many labels.
    """
    generator = np.random.default_rng(seed)
    words = np.searchsorted(_zipf(vocabulary, 0.5), generator.random((labels, _TOPIC_WORDS)))
    return words, generator.permutation(labels)


@lru_cache(maxsize=4)
def _zipf(count: int, exponent: float) -> np.ndarray:
    """Return the cumulated probabilities (count,) of a Zipf distribution."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.cumsum(weights) / weights.sum()
