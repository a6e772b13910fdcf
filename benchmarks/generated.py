"""Generate label data of any size: a Zipf tail of labels, shared words, a stated ceiling.

Each label has a dozen topic words, drawn from a vocabulary that all labels share, so that no word alone
identifies a label. A document has a few labels; the text holds some topic words of each, and common words
between them. A part of the labels leaves no word in the text: only chance finds those, which is
the ceiling of recall. The first label of a document always leaves its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nlpcapsule.data.documents import Document

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
    labels_per_document: float = 4.0  # on average, at least 1
    tail: float = 0.8  # exponent of the labels' Zipf distribution
    silent: float = 0.03  # probability that a label other than the first leaves no word
    seed: int = 1

    @property
    def recall_ceiling(self) -> float:
        """The share of labels that can be found from the text, on average."""
        return 1 - self.silent * (1 - 1 / self.labels_per_document)

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents, which are never all in memory."""
        generator = np.random.default_rng(self.seed)
        topics = self._topics(generator)  # (n, 12)
        frequency = _zipf(self.labels, self.tail)
        common = _zipf(self.vocabulary // 10, 1.0)
        for start in range(0, self.documents, _AT_A_TIME):
            count = min(_AT_A_TIME, self.documents - start)
            sizes = 1 + generator.poisson(self.labels_per_document - 1, count)
            chosen = np.searchsorted(frequency, generator.random(sizes.sum()))
            noise = np.searchsorted(common, generator.random((count, self.common_words)))
            ends = np.cumsum(sizes)
            for row, (begin, end) in enumerate(zip(ends - sizes, ends, strict=True)):
                own = list(dict.fromkeys(chosen[begin:end].tolist()))
                yield self._document(start + row, own, noise[row], topics, generator)

    def _topics(self, generator: np.random.Generator) -> np.ndarray:
        """Return the topic words (n, 12) of each label; common topic words belong to many labels."""
        cumulated = _zipf(self.vocabulary, 0.5)
        return np.searchsorted(cumulated, generator.random((self.labels, _TOPIC_WORDS)))

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
        order = generator.permutation(len(text))
        names = tuple(f"label-{label}" for label in labels)
        return Document(text=" ".join(text[i] for i in order), labels=names, id=str(number))


def _zipf(count: int, exponent: float) -> np.ndarray:
    """Return the cumulated probabilities (count,) of a Zipf distribution."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.cumsum(weights) / weights.sum()
