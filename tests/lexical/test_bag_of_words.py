"""Words as weights agree with scikit-learn; arrays come back from disk as they went."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.arrays import load_arrays, save_arrays
from nlpcapsule.lexical.bag_of_words import BagOfWords, word_counts
from nlpcapsule.lexical.ranker import label_matrix

WORDS = 9
documents = st.lists(st.lists(st.integers(0, WORDS - 1), max_size=12), min_size=1, max_size=6)


def identity(tokens):
    return tokens


def by_scikit_learn(train, rows):
    vectorizer = TfidfVectorizer(analyzer=identity, sublinear_tf=True).fit(train)
    dense = np.zeros((len(rows), WORDS))
    dense[:, list(vectorizer.get_feature_names_out())] = vectorizer.transform(rows).toarray()
    return dense


@given(documents.filter(any), documents)
def test_word_weights_are_those_of_scikit_learn(train, unseen):
    bag = BagOfWords.fit(Ragged.from_rows(train), WORDS)
    for rows in (train, unseen):
        ours = bag.rows(Ragged.from_rows(rows))
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours.toarray(), by_scikit_learn(train, rows), atol=1e-6)


@given(documents)
def test_ignored_tokens_have_no_weight_and_rows_have_length_one_or_are_empty(rows):
    bag = BagOfWords.fit(Ragged.from_rows(rows), WORDS, ignored=(0, 1))
    weights = bag.rows(Ragged.from_rows(rows))
    assert not weights[:, :2].nnz
    assert weights.has_sorted_indices
    for row, words in zip(weights, rows, strict=True):
        assert sparse.linalg.norm(row) == pytest.approx(1 if any(word > 1 for word in words) else 0)


@given(documents.filter(any), documents, st.integers(1, 5))
def test_openings_are_features_of_their_own_beside_the_whole(train, unseen, lead):
    bag = BagOfWords.fit(Ragged.from_rows(train), WORDS, lead_tokens=lead)
    rows = bag.rows(Ragged.from_rows(unseen)).toarray()
    begun, all_begun = ([row[:lead] for row in part] for part in (unseen, train))
    whole, first = by_scikit_learn(train, unseen), 0.7 * by_scikit_learn(all_begun, begun)
    expected = np.hstack([whole, first])
    length = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, expected / np.where(length > 0, length, 1), atol=1e-6)
    again = BagOfWords.from_arrays({**bag.to_arrays(), "bias": 1})
    assert np.array_equal(again.rows(Ragged.from_rows(unseen)).toarray(), rows)


@pytest.mark.parametrize("lead", [0, 3])
def test_the_features_of_a_document_are_the_same_next_to_others(lead):
    generator = np.random.default_rng(lead)
    tokens = Ragged.from_rows(generator.integers(0, 20, size) for size in (9, 0, 1, 30, 2))
    bag = BagOfWords.fit(tokens, 20, ignored=(0,), lead_tokens=lead)
    alone = sparse.vstack([bag.rows(tokens.take([row])) for row in range(len(tokens))], format="csr")
    together = bag.rows(tokens)
    assert together.dtype == alone.dtype == np.float32
    assert together.has_canonical_format
    np.testing.assert_array_equal(together.toarray(), alone.toarray())


def test_counting_leaves_the_documents_as_they_are():
    tokens = Ragged.from_rows([[5, 3, 5, 2], [8, 1], [4, 4, 4]])
    before = tokens.values.copy()
    assert word_counts(tokens, WORDS)[0].toarray().tolist() == [[0, 0, 1, 1, 0, 2, 0, 0, 0]]
    BagOfWords.fit(tokens, WORDS).rows(tokens)
    np.testing.assert_array_equal(tokens.values, before)


def test_the_label_matrix_has_ones_for_known_labels_however_often_they_are_named():
    matrix = label_matrix(Ragged.from_rows([[1, 1, 2], [], [7, 0]]), 3)
    assert matrix.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_arrays_come_back_as_they_were_saved(kind, tmp_path):
    matrix = kind(np.array([[0, 2.5, 0, 1], [0, 0, 0, 0], [3, 0, 0, 0]], dtype=np.float32))
    save_arrays(
        tmp_path / "arrays.safetensors",
        matrix=matrix,
        empty=sparse.csr_matrix((2, 3), dtype=np.float32),
        shape=np.arange(6).reshape(2, 3).T,
        data=np.zeros(0, dtype=np.int64),
    )
    arrays = load_arrays(tmp_path / "arrays.safetensors")
    assert set(arrays) == {"matrix", "empty", "shape", "data"}
    assert arrays["matrix"].dtype == np.float32
    np.testing.assert_array_equal(arrays["matrix"].toarray(), matrix.toarray())
    assert arrays["empty"].shape == (2, 3)
    assert arrays["shape"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert arrays["data"].shape == (0,)
