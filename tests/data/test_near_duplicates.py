"""Near-duplicates between the parts of a data set are found, and nothing else is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpcapsule.data.near_duplicates import find_near_duplicates
from nlpcapsule.errors import ConfigError


def random_documents(count: int, length: int, seed: int, words: int = 20_000) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.integers(2, words, length).astype(np.int32) for _ in range(count)]


def plain_similarity(one: np.ndarray, other: np.ndarray) -> float:
    """Jaccard similarity of word 5-shingles, slowly and from its definition."""

    def shingles(document: np.ndarray) -> set[tuple[int, ...]]:
        tokens = tuple(document.tolist())
        return {tokens[start : start + 5] for start in range(max(len(tokens) - 4, 1))}

    return len(shingles(one) & shingles(other)) / len(shingles(one) | shingles(other))


def edited(document: np.ndarray, generator: np.random.Generator, edits: int) -> np.ndarray:
    """A copy with words replaced, and one word put in and one taken out."""
    copy = document.copy()
    copy[generator.choice(len(copy), edits, replace=False)] = generator.integers(50_000, 60_000, edits)
    return np.delete(np.insert(copy, 17, 55_555), 100)


def test_planted_copies_with_small_edits_are_found_and_no_others() -> None:
    generator = np.random.default_rng(3)
    train = random_documents(400, 300, seed=1)
    dev = random_documents(100, 300, seed=2)
    planted = {(index * 3, index): edited(train[index * 3], generator, edits=2) for index in range(50)}
    for (_, dev_index), copy in planted.items():
        dev[dev_index] = copy
    found = find_near_duplicates(train, dev)
    assert {(train_index, dev_index) for train_index, dev_index, _ in found} == set(planted)
    assert len({dev_index for _, dev_index, _ in found}) == 50


def test_the_similarity_is_exact() -> None:
    generator = np.random.default_rng(5)
    train = random_documents(30, 200, seed=4, words=50)
    dev = [edited(document, generator, edits=edits) for edits, document in enumerate(train[:12])]
    found = find_near_duplicates(train, dev, threshold=0.4)
    expected = {
        (train_index, dev_index): plain_similarity(train[train_index], dev[dev_index])
        for train_index in range(len(train))
        for dev_index in range(len(dev))
    }
    expected = {pair: similarity for pair, similarity in expected.items() if similarity >= 0.4}
    assert len(expected) >= 8
    assert {(t, d): s for t, d, s in found} == pytest.approx(expected)


@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_pairs_just_above_the_threshold_are_rarely_missed(threshold: float) -> None:
    train = random_documents(1000, 400, seed=6)
    shingles = 396
    shared = math.ceil(2 * shingles * threshold / (1 + threshold))  # so that shared / union just reaches it
    dev = [document.copy() for document in train]
    for document in dev:
        document[shared + 4 :] = np.arange(99_999, 99_999 + 400 - shared - 4)  # an ending of other words
    assert threshold <= plain_similarity(train[0], dev[0]) < threshold + 0.01
    found = find_near_duplicates(train, dev, threshold)
    assert all(train_index == dev_index for train_index, dev_index, _ in found)
    assert len({dev_index for _, dev_index, _ in found}) >= 995


documents = st.lists(st.integers(0, 3), max_size=9).map(lambda ids: np.array(ids, dtype=np.int32))


@given(st.lists(documents, max_size=6), st.lists(documents, max_size=6), st.floats(0.05, 1.0))
@settings(max_examples=100, deadline=None)
def test_identical_documents_are_always_found_and_similarities_are_true(
    train: list[np.ndarray], dev: list[np.ndarray], threshold: float
) -> None:
    found = {(t, d): s for t, d, s in find_near_duplicates(train, dev, threshold)}
    for (train_index, dev_index), similarity in found.items():
        assert similarity == pytest.approx(plain_similarity(train[train_index], dev[dev_index]))
        assert similarity >= threshold
    for train_index, one in enumerate(train):
        for dev_index, other in enumerate(dev):
            if one.tolist() == other.tolist():
                assert found[train_index, dev_index] == 1.0


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16])
def test_short_documents_compare_as_wholes(dtype: type) -> None:
    train = [np.array(ids, dtype=dtype) for ids in ([7, 8, 9], [7, 8], [7, 8, 9, 10], [])]
    dev = [np.array(ids, dtype=dtype) for ids in ([7, 8, 9], [8, 7], [7, 8, 9, 10, 11])]
    found = find_near_duplicates(train, dev, threshold=0.1)
    assert found == [(0, 0, 1.0)]


def test_every_copy_in_train_is_listed_and_the_dev_document_counted_once() -> None:
    [document] = random_documents(1, 50, seed=8)
    found = find_near_duplicates([document, *random_documents(3, 50, seed=9), document], [document])
    assert found == [(0, 0, 1.0), (4, 0, 1.0)]


def test_indices_stay_right_beyond_one_chunk_of_documents() -> None:
    train, dev = random_documents(700, 20, seed=10), random_documents(600, 20, seed=11)
    dev[599], dev[256] = train[699], train[255]
    assert find_near_duplicates(train, dev) == [(255, 256, 1.0), (699, 599, 1.0)]


def test_empty_parts_have_no_duplicates() -> None:
    documents = random_documents(2, 20, seed=12)
    assert find_near_duplicates([], documents) == []
    assert find_near_duplicates(documents, []) == []


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan")])
def test_an_impossible_threshold_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match="threshold must be above 0"):
        find_near_duplicates([], [], threshold)
