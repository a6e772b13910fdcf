"""Lexical files of a model that do not fit its tokenizer and labels are refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.name_match import NameMatch
from nlpcapsule.lexical.neighbours import Neighbours
from nlpcapsule.lexical.whole_words import JoinedPieces, SpelledPieces, WholeWords

VOCABULARY = ["[PAD]", "[UNK]", "rain", "wind", "##y", "snow"]
TOKENS = Ragged.from_rows([[2, 3], [3, 4, 5], [5], [2, 5]])
LABELS = Ragged.from_rows([[0], [0, 1], [1], [0]])
COUNTS = np.array([3, 2, 0])


@pytest.fixture
def neighbours():
    return Neighbours.fit(EncodedDocuments(TOKENS, LABELS), len(VOCABULARY), 3, ignored=(0, 1))


@pytest.fixture
def names():
    forms = [Ragged.from_rows([[2]]), Ragged.from_rows([[3], [5]]), Ragged.from_rows([[5, 2]])]
    return NameMatch.fit(forms, COUNTS > 0, TOKENS, VOCABULARY, ignored=(0, 1))


def test_documents_that_fit_pass(neighbours):
    neighbours.check(len(VOCABULARY), COUNTS, 4)
    neighbours.check(len(VOCABULARY), COUNTS, None)


@pytest.mark.parametrize(
    ("size", "counts", "documents"),
    [(7, COUNTS, 4), (6, COUNTS, 5), (6, np.array([2, 3, 0]), 4), (6, np.array([3, 2]), 4)],
)
def test_documents_of_another_model_are_refused(neighbours, size, counts, documents):
    with pytest.raises(ModelFolderError):
        neighbours.check(size, counts, documents)


def test_labels_of_documents_that_are_no_ones_are_refused(neighbours):
    with pytest.raises(ModelFolderError, match=r"do not have the labels that labels\.json counts"):
        replace(neighbours, labels=2 * neighbours.labels).check(len(VOCABULARY), COUNTS, 4)


def test_names_that_fit_pass(names):
    names.check(len(VOCABULARY), COUNTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda names: {"folded": names.folded[:-1]},
        lambda names: {"folded": names.folded + 100},
        lambda names: {"folded": names.folded - 5},
        lambda names: {"offsets": names.offsets[::-1].copy()},
        lambda names: {"offsets": names.offsets + 1},
        lambda names: {"offsets": names.offsets * 100},
        lambda names: {"offsets": np.zeros(3, dtype=np.int64)},
        lambda names: {"examples": ~names.examples},
        lambda names: {"examples": names.examples.astype(np.int8)},
        lambda names: {"forms": sparse.csr_matrix(names.forms * np.float32(np.inf))},
    ],
)
def test_names_that_lead_outside_are_refused(names, change):
    with pytest.raises(ModelFolderError):
        replace(names, **change(names)).check(len(VOCABULARY), COUNTS)


def test_word_pieces_have_to_be_the_tokenizers():
    hashes = np.array([3, 9], dtype=np.uint64)
    joined = JoinedPieces(np.array([piece.startswith("##") for piece in VOCABULARY]))
    WholeWords(joined, hashes).check(VOCABULARY)
    spelled = SpelledPieces(VOCABULARY, "▁")
    WholeWords(spelled, hashes).check(VOCABULARY)
    for broken in (
        WholeWords(JoinedPieces(joined.continues[:-1]), hashes),
        WholeWords(JoinedPieces(joined.continues.astype(np.int8)), hashes),
        WholeWords(SpelledPieces(VOCABULARY[:-1], "▁"), hashes),
        WholeWords(SpelledPieces(VOCABULARY, "x"), hashes),
        WholeWords(joined, hashes[::-1].copy()),
        WholeWords(joined, hashes.astype(np.int64)),
    ):
        with pytest.raises(ModelFolderError):
            broken.check(VOCABULARY)


@pytest.mark.parametrize("text", [b"\xff", b"", b"7", b"[" * 100_000])
def test_word_pieces_that_are_no_json_are_refused(text):
    arrays = {"pieces": np.frombuffer(text, dtype=np.uint8), "hashes": np.zeros(0, dtype=np.uint64)}
    with pytest.raises(ModelFolderError, match="the word pieces cannot be read"):
        WholeWords.from_arrays(arrays)
