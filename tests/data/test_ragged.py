"""Rows of different lengths, packed and unpacked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.data.ragged import Ragged

ROWS = st.lists(st.lists(st.integers(0, 1000), max_size=6), max_size=8)


def as_lists(ragged):
    return [row.tolist() for row in ragged]


@given(ROWS)
def test_rows_come_back_as_they_went_in(rows):
    ragged = Ragged.from_rows(rows)
    assert as_lists(ragged) == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert len(ragged) == len(rows)
    assert (ragged.values.dtype, ragged.offsets.dtype) == (np.int32, np.int64)


@given(ROWS.filter(bool), st.data())
def test_take_gives_the_chosen_rows_in_their_order(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    assert as_lists(Ragged.from_rows(rows).take(chosen)) == [rows[index] for index in chosen]


@given(ROWS, st.integers(1, 7))
def test_cut_keeps_the_beginning(rows, length):
    assert as_lists(Ragged.from_rows(rows).cut(length)) == [row[:length] for row in rows]


@given(ROWS.filter(bool), st.integers(1, 8))
def test_padded_fills_up_and_cuts_to_the_width(rows, width):
    block = Ragged.from_rows(rows).padded(range(len(rows)), fill=-1, width=width)
    assert block.dtype == np.int64
    assert block.tolist() == [(row + [-1] * width)[:width] for row in rows]


def test_padded_is_as_wide_as_the_longest_chosen_row():
    ragged = Ragged.from_rows([[1, 2, 3], [4], []])
    assert ragged.padded([1, 2], fill=0).tolist() == [[4], [0]]
    assert ragged.padded([2], fill=9).tolist() == [[9]]
    assert ragged.padded([], fill=0).shape == (0, 1)


@pytest.mark.parametrize("row", [-1, 2])
def test_a_row_that_is_not_there_is_an_index_error(row):
    with pytest.raises(IndexError):
        Ragged.from_rows([[1], [2]])[row]


def test_an_iterator_is_packed_as_a_list_is():
    assert as_lists(Ragged.from_rows(iter([np.array([1, 2]), np.array([3])]))) == [[1, 2], [3]]
