"""Documents and questions as arrays, ready for training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nlpcapsule.data.documents import Document, Question
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import GrowingRows, Ragged
from nlpcapsule.data.tokens import WordTokenizer

_CHUNK = 1_000  # texts tokenized at a time, which bounds memory


@dataclass(frozen=True)
class EncodedDocuments:
    """Token ids and label ids of documents."""

    tokens: Ragged  # token ids; no row is empty
    labels: Ragged  # label ids; ids from the number of labels upwards are labels that training never saw

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: np.ndarray | Sequence[int]) -> EncodedDocuments:
        """Return the chosen documents, in the given order."""
        return EncodedDocuments(self.tokens.take(rows), self.labels.take(rows))

    def fingerprint(self) -> str:
        """Return a hash of all tokens and labels, which identifies the data."""
        return _hash(self.tokens, self.labels)


@dataclass(frozen=True)
class EncodedQuestions:
    """Token ids of questions and of their candidate answers."""

    questions: Ragged  # one row per question
    answers: Ragged  # one row per candidate, question by question
    offsets: np.ndarray  # (questions + 1,) where each question's candidates begin in `answers`
    labels: np.ndarray  # (candidates,) int64: 1 right, 0 wrong, -1 unknown

    def __len__(self) -> int:
        return len(self.questions)

    def candidates(self, question: int) -> np.ndarray:
        """Return the rows of `answers` that belong to a question."""
        return np.arange(self.offsets[question], self.offsets[question + 1])

    def fingerprint(self) -> str:
        """Return a hash of all tokens and labels."""
        return _hash(self.questions, self.answers, self.offsets, self.labels)


def encode_texts(texts: Iterable[str], tokenizer: WordTokenizer, max_tokens: int) -> Ragged:
    """Tokenize texts in chunks."""
    remaining = iter(texts)
    chunks = iter(lambda: list(islice(remaining, _CHUNK)), [])
    return Ragged.from_rows(row for chunk in chunks for row in tokenizer.encode(chunk, max_tokens))


def encode_documents(
    documents: Iterable[Document], tokenizer: WordTokenizer, labels: LabelVocabulary, max_tokens: int
) -> EncodedDocuments:
    """Tokenize documents and look up their labels; the texts are not kept."""
    numbers, unseen = GrowingRows(), dict[str, int]()

    def texts() -> Iterator[str]:
        for document in documents:
            numbers.append(labels.numbers(document.labels, unseen))
            yield document.text

    tokens = encode_texts(texts(), tokenizer, max_tokens)
    return EncodedDocuments(tokens, numbers.ragged())


def encode_questions(
    questions: Sequence[Question], tokenizer: WordTokenizer, max_tokens: int
) -> EncodedQuestions:
    """Tokenize questions and their candidates."""
    answers = [candidate for question in questions for candidate in question.candidates]
    texts = encode_texts((question.text for question in questions), tokenizer, max_tokens)
    candidates = encode_texts((answer.text for answer in answers), tokenizer, max_tokens)
    offsets = np.cumsum([0, *(len(question.candidates) for question in questions)], dtype=np.int64)
    labels = [-1 if answer.label is None else answer.label for answer in answers]
    return EncodedQuestions(texts, candidates, offsets, np.array(labels, dtype=np.int64))


def _hash(*arrays: Ragged | np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        parts = (array.values, array.offsets) if isinstance(array, Ragged) else (array,)
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()[:16]
