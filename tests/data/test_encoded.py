"""Documents and questions as arrays."""

import numpy as np
import pytest

from label_vocabulary import vocabulary_of
from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.data.encoded import (
    EncodedDocuments,
    EncodedQuestions,
    encode_documents,
    encode_questions,
    encode_texts,
)
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer

DOCUMENTS = [
    Document("a cat and a dog", ("animals",)),
    Document("rain and wind", ("weather", "news")),
    Document("", ()),
]
QUESTIONS = [
    Question("who barks?", (Candidate("a dog", 1), Candidate("a cat", 0))),
    Question("what falls?", (Candidate("rain"),)),
    Question("who meows?", (Candidate("wind", 0), Candidate("a cat", 1), Candidate("a dog", 0))),
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordTokenizer.train([document.text for document in DOCUMENTS], min_count=1)


@pytest.fixture
def labels():
    return vocabulary_of([document.labels for document in DOCUMENTS])


@pytest.fixture
def documents(tokenizer, labels):
    return encode_documents(DOCUMENTS, tokenizer, labels, max_tokens=4)


@pytest.fixture
def questions(tokenizer):
    return encode_questions(QUESTIONS, tokenizer, max_tokens=4)


class RecordingTokenizer:
    """Gives each text its length, and remembers how many texts came at a time."""

    def __init__(self):
        self.chunks = []

    def encode(self, texts, max_tokens):
        self.chunks.append(len(texts))
        return [np.array([len(text)]) for text in texts]


def words(tokenizer, ids):
    return " ".join(tokenizer.vocabulary[id] for id in ids)


def test_documents_become_words_and_label_ids(tokenizer, labels, documents):
    assert words(tokenizer, documents.tokens[0]) == "a cat and a"  # cut at 4
    assert words(tokenizer, documents.tokens[1]) == "rain and wind"
    assert [labels.ids[id] for id in documents.labels[1]] == ["weather", "news"]
    assert len(documents.labels[2]) == 0
    assert len(documents) == 3


def test_no_row_of_tokens_is_empty(documents):
    assert documents.tokens.lengths.min() >= 1


def test_a_label_training_never_saw_gets_an_id_above_all_others(tokenizer, labels):
    encoded = encode_documents([Document("a cat", ("animals", "unseen"))], tokenizer, labels, max_tokens=4)
    assert encoded.labels[0].tolist() == [labels.ids.index("animals"), len(labels)]


def test_texts_of_an_iterator_are_tokenised_a_chunk_at_a_time():
    tokenizer = RecordingTokenizer()
    encoded = encode_texts(("x" * (number % 7) for number in range(2300)), tokenizer, max_tokens=4)
    assert tokenizer.chunks == [1000, 1000, 300]
    assert encoded.values.tolist() == [number % 7 for number in range(2300)]


def test_no_texts_make_no_rows():
    assert len(encode_texts([], RecordingTokenizer(), max_tokens=4)) == 0


def test_taken_documents_keep_tokens_and_labels_together(documents):
    taken = documents.take([1, 0])
    for new, old in ((0, 1), (1, 0)):
        assert taken.tokens[new].tolist() == documents.tokens[old].tolist()
        assert taken.labels[new].tolist() == documents.labels[old].tolist()


@pytest.mark.parametrize(
    ("tokens", "labels"),
    [
        ([[1, 2], [4]], [[0], [1]]),  # another token
        ([[1], [2, 3]], [[0], [1]]),  # another border between rows
        ([[1, 2], [3]], [[0, 1], []]),  # a label at another document
        ([[3], [1, 2]], [[1], [0]]),  # another order
    ],
)
def test_other_documents_have_another_fingerprint(tokens, labels):
    first = EncodedDocuments(Ragged.from_rows([[1, 2], [3]]), Ragged.from_rows([[0], [1]]))
    other = EncodedDocuments(Ragged.from_rows(tokens), Ragged.from_rows(labels))
    assert first.fingerprint() == first.take([0, 1]).fingerprint()
    assert first.fingerprint() != other.fingerprint()


def test_questions_know_their_candidates(tokenizer, questions):
    assert len(questions) == 3
    assert [questions.candidates(row).tolist() for row in range(3)] == [[0, 1], [2], [3, 4, 5]]
    assert questions.labels.tolist() == [1, 0, -1, 0, 1, 0]
    assert words(tokenizer, questions.answers[4]) == "a cat"


@pytest.mark.parametrize(
    "change",
    [
        {"questions": Ragged.from_rows([[1], [2, 3]])},
        {"answers": Ragged.from_rows([[4], [5, 6], [7]])},
        {"offsets": np.array([0, 2, 3])},
        {"labels": np.array([0, 1, 1])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_questions_have_another_fingerprint(change):
    parts = {
        "questions": Ragged.from_rows([[1, 2], [3]]),
        "answers": Ragged.from_rows([[4, 5], [6], [7]]),
        "offsets": np.array([0, 1, 3]),
        "labels": np.array([0, 1, 0]),
    }
    first = EncodedQuestions(**parts)
    assert first.fingerprint() == EncodedQuestions(**parts).fingerprint()
    assert first.fingerprint() != EncodedQuestions(**{**parts, **change}).fingerprint()
