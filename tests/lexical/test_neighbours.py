"""The nearest training documents vote with their labels."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical import neighbours as module
from nlpcapsule.lexical.neighbours import SHARPNESS, Neighbours, ragged_from_arrays

TEXTS = [[2, 3, 4], [2, 3, 4, 5], [6, 7, 8], [6, 7, 9]]
LABELS = [[0], [0, 1], [2], [2, 3]]
ALL = np.arange(4)


def ragged(rows):
    return Ragged.from_rows([np.array(row, dtype=np.int64) for row in rows])


@pytest.fixture
def fitted():
    return Neighbours.fit(EncodedDocuments(ragged(TEXTS), ragged(LABELS)), 12, 4, ignored=(0, 1))


def test_a_copy_votes_with_its_own_labels_first_of_all(fitted):
    shares, nearest = fitted.shares(ragged([TEXTS[0]]), ALL[None])
    cosine = (fitted.documents[0] @ fitted.documents[1].T).toarray()[0, 0]
    assert nearest == pytest.approx([1])
    assert shares[0] == pytest.approx([1, cosine**SHARPNESS / (1 + cosine**SHARPNESS), 0, 0], abs=1e-5)


def test_shares_are_those_of_the_candidates_asked_for(fitted):
    candidates = np.array([[3, 1], [0, 2], [1, 1], [2, 0]])
    every = fitted.shares(ragged(TEXTS), np.tile(ALL, (4, 1)))[0]
    asked = fitted.shares(ragged(TEXTS), candidates)[0]
    assert asked == pytest.approx(np.take_along_axis(every, candidates, axis=1))


def test_a_document_like_no_other_gets_no_votes(fitted):
    shares, nearest = fitted.shares(ragged([[10, 11], [], [0, 1]]), np.tile(ALL, (3, 1)))
    assert not shares.any()
    assert not nearest.any()


def test_only_the_nearest_are_asked(fitted, monkeypatch):
    monkeypatch.setattr(module, "NEAREST", 1)
    shares, _ = fitted.shares(ragged([[2, 3, 4, 5]]), ALL[None])
    assert shares[0] == pytest.approx([1, 1, 0, 0])


def test_documents_do_not_depend_on_who_is_asked_beside_them(fitted, monkeypatch):
    candidates = np.tile(ALL, (4, 1))
    together = fitted.shares(ragged(TEXTS), candidates)
    monkeypatch.setattr(module, "_NUMBERS_AT_A_TIME", 1)
    alone = fitted.shares(ragged(TEXTS), candidates)
    assert np.array_equal(together[0], alone[0])
    assert np.array_equal(together[1], alone[1])


@pytest.mark.parametrize("few", [0, 2**16])
def test_votes_are_the_weights_of_the_documents_that_have_a_label(few, monkeypatch):
    monkeypatch.setattr(module, "_FEW_NUMBERS", few)
    generator = np.random.default_rng(few)
    labels = [generator.choice(9, size, replace=False) for size in generator.integers(0, 5, 30)]
    fitted = Neighbours.fit(EncodedDocuments(ragged([[2]] * 30), ragged(labels)), 3, 9)
    documents, candidates = generator.integers(0, 30, (4, 6)), generator.integers(0, 9, (4, 5))
    weights = generator.random((4, 6))
    expected = [
        [sum(w for d, w in zip(*row, strict=True) if label in labels[d]) for label in asked]
        for *row, asked in zip(documents, weights, candidates, strict=True)
    ]
    assert fitted._weighted_labels(documents, weights, candidates) == pytest.approx(np.array(expected))


def test_memory_does_not_grow_with_the_number_of_labels(fitted):
    many = Neighbours.fit(EncodedDocuments(ragged(TEXTS), ragged(LABELS)), 12, 10**6, ignored=(0, 1))
    asked = ragged(TEXTS), np.tile(ALL, (4, 1))
    tracemalloc.start()
    shares = many.shares(*asked)[0]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(shares, fitted.shares(*asked)[0])
    assert most < 4_000_000  # 32 MB if votes were dense


def test_it_is_read_as_it_was_written(fitted, tmp_path):
    fitted.save(tmp_path)
    asked = ragged(TEXTS), np.tile(ALL, (4, 1))
    assert np.array_equal(Neighbours.load(tmp_path).shares(*asked)[0], fitted.shares(*asked)[0])


def test_kept_tokens_are_read_as_they_were_written(fitted, tmp_path):
    replace(fitted, tokens=ragged(TEXTS)).save(tmp_path)
    again = Neighbours.load(tmp_path)
    assert again.tokens is not None
    assert [row.tolist() for row in again.tokens] == TEXTS
    again.check(12, np.array([2, 1, 2, 1]), 4)
    with pytest.raises(ModelFolderError, match="tokens of 3 documents are kept, not of 4"):
        replace(again, tokens=ragged(TEXTS[:3])).check(12, np.array([2, 1, 2, 1]), 4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"tokens": np.arange(4)}, "token_offsets is missing"),
        ({"tokens": np.arange(4), "token_offsets": np.array([0, 5])}, "do not ascend"),
        ({"tokens": np.arange(4), "token_offsets": np.array([0, 3, 2, 4])}, "do not ascend"),
        ({"tokens": np.arange(4), "token_offsets": np.array([1, 4])}, "do not ascend"),
        ({"tokens": np.arange(4), "token_offsets": np.zeros(0, dtype=int)}, "do not ascend"),
        ({"tokens": np.ones(4), "token_offsets": np.array([0, 4])}, "tokens is made of float64"),
        ({"tokens": np.ones((2, 2), dtype=int), "token_offsets": np.array([0, 4])}, "tokens has the shape"),
    ],
)
def test_damaged_tokens_are_refused(arrays, message):
    with pytest.raises(ModelFolderError, match=message):
        ragged_from_arrays(arrays)


def test_an_index_finds_the_neighbours_that_a_full_comparison_finds(monkeypatch, tmp_path):
    generator = np.random.default_rng(3)
    topics = generator.integers(0, 40, 400)
    words = topics[:, None] * 10 + generator.integers(0, 10, (400, 12))
    documents = EncodedDocuments(Ragged.from_rows(words), Ragged.from_rows(topics[:, None]))
    candidates = np.tile(np.arange(40), (400, 1))
    exact = Neighbours.fit(documents, 400, 40)
    monkeypatch.setattr(module, "MOST_EXACT", 0)
    indexed = Neighbours.fit(documents, 400, 40)
    assert indexed.index is not None
    indexed.save(tmp_path)
    loaded = Neighbours.load(tmp_path)
    loaded.check(400, np.bincount(topics, minlength=40), 400)
    for found in (indexed, loaded):
        shares, nearest = found.shares(documents.tokens, candidates)
        expected, expected_nearest = exact.shares(documents.tokens, candidates)
        np.testing.assert_allclose(nearest, expected_nearest, atol=1e-6)
        np.testing.assert_allclose(shares, expected, atol=1e-4)
