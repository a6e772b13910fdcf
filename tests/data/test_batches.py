"""The order of training: every document once, the same whenever it is asked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.data.batches import batch_rows


def as_lists(batches):
    return [batch.tolist() for batch in batches]


def lengths_of(count, seed=0):
    return np.random.default_rng(seed).integers(1, 500, count)


@given(st.integers(0, 300), st.integers(1, 9), st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_every_row_comes_exactly_once_in_an_epoch(count, batch_size, seed, epoch, shuffle):
    batches = batch_rows(lengths_of(count), batch_size, seed, epoch, shuffle)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(count))
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert sum(len(batch) < batch_size for batch in batches) <= 1


def test_the_order_is_a_function_of_seed_and_epoch():
    lengths = lengths_of(100)
    first = as_lists(batch_rows(lengths, 8, seed=1, epoch=2))
    assert first == as_lists(batch_rows(lengths, 8, seed=1, epoch=2))
    assert first != as_lists(batch_rows(lengths, 8, seed=1, epoch=3))
    assert first != as_lists(batch_rows(lengths, 8, seed=2, epoch=2))


def test_without_shuffling_the_datas_order_stands_in_every_epoch():
    lengths = lengths_of(7)
    assert as_lists(batch_rows(lengths, 3, 1, 0, shuffle=False)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert as_lists(batch_rows(lengths, 3, 1, 5, shuffle=False)) == [[0, 1, 2], [3, 4, 5], [6]]


def test_documents_of_a_batch_are_of_similar_length():
    lengths = lengths_of(640)
    batches = batch_rows(lengths, 20, seed=1, epoch=0)
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    unsorted = sum(20 * lengths[start : start + 20].max() for start in range(0, 640, 20))
    assert padded < 1.1 * lengths.sum() < unsorted


def test_short_and_long_batches_alternate_without_order():
    lengths = lengths_of(640)
    means = [lengths[batch].mean() for batch in batch_rows(lengths, 20, seed=1, epoch=0)]
    assert means != sorted(means)
