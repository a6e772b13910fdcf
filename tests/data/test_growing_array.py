"""Arrays that outgrow memory are kept in files, and read the same."""

from __future__ import annotations

import mmap
from pathlib import Path

import joblib
import numpy as np
import pytest

from nlpcapsule.data import growing_array
from nlpcapsule.data.growing_array import GrowingArray
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical import bag_of_words
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.processes import pool_options


def is_mapped(array: np.ndarray) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


@pytest.mark.parametrize("most", [0, 7, 10**9])
def test_values_are_those_appended(most, monkeypatch):
    monkeypatch.setattr(growing_array, "MOST_IN_MEMORY", most)
    growing = GrowingArray(np.int32)
    parts = [np.arange(count, dtype=np.int32) for count in (3, 0, 9, 1)]
    for part in parts:
        growing.append(part)
    array = growing.array()
    np.testing.assert_array_equal(array, np.concatenate(parts))
    assert array.dtype == np.int32
    assert is_mapped(array) == (most < 13)
    array[0] = 5  # as with an array in memory
    assert array[0] == 5


@pytest.mark.parametrize("has_proc", [True, False])
def test_worker_processes_read_the_file(has_proc, monkeypatch):
    monkeypatch.setattr(growing_array, "MOST_IN_MEMORY", 7)
    if not has_proc:
        monkeypatch.setattr(Path, "exists", lambda path: False)
    growing = GrowingArray(np.int64)
    growing.append(np.arange(20))
    array = growing.array()
    monkeypatch.undo()
    del growing
    sums = joblib.Parallel(n_jobs=2, **pool_options())(joblib.delayed(np.sum)(array[k:]) for k in range(3))
    assert [int(value) for value in sums] == [190, 190, 189]


def test_nothing_appended_is_an_empty_array():
    assert GrowingArray(np.float32).array().shape == (0,)


def test_rows_in_a_file_read_as_those_in_memory(monkeypatch):
    rows = [[1, 2, 3], [], [4], [5, 6]]
    expected = Ragged.from_rows(rows)
    monkeypatch.setattr(growing_array, "MOST_IN_MEMORY", 2)
    mapped = Ragged.from_rows(rows)
    assert is_mapped(mapped.values)
    np.testing.assert_array_equal(mapped.values, expected.values)
    np.testing.assert_array_equal(mapped.offsets, expected.offsets)
    assert [row.tolist() for row in mapped.slice(1, 4)] == [[], [4], [5, 6]]
    assert [row.tolist() for row in mapped.slice(2, 99)] == [[4], [5, 6]]


@pytest.mark.parametrize("lead_tokens", [0, 3])
def test_features_in_a_file_are_those_in_memory(lead_tokens, monkeypatch):
    generator = np.random.default_rng(1)
    tokens = Ragged.from_rows(generator.integers(2, 50, size) for size in generator.integers(0, 20, 40))
    bag = BagOfWords.fit(tokens, 50, (0, 1), lead_tokens)
    expected = bag.rows(tokens)
    monkeypatch.setattr(growing_array, "MOST_IN_MEMORY", 5)
    monkeypatch.setattr(bag_of_words, "_DOCUMENTS_AT_A_TIME", 7)
    mapped = bag.rows(tokens)
    assert (mapped != expected).nnz == 0
    assert mapped.shape == expected.shape
    assert is_mapped(mapped.data)
