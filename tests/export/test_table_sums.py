"""Sums of table rows against plain loops over tokens, windows and offsets."""

from __future__ import annotations

import numpy as np
import pytest

from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.export.table_sums import TableSums

WORDS, FILTERS, PADDING = 11, 3, 2


def table_sums(widths: list[int], dtype: type, extreme: bool = False) -> TableSums:
    values = np.random.default_rng(1).integers(-127, 128, (WORDS * sum(widths), FILTERS))
    table = np.full_like(values, -127) if extreme else values
    return TableSums(table.astype(dtype), np.array(widths), PADDING)


def slow_sums(sums: TableSums, tokens: list[int]) -> np.ndarray:
    """Add one row after the other."""
    widths = sums.widths.tolist()
    found = np.zeros((len(tokens), len(widths), FILTERS))
    for place in range(len(tokens)):
        for window, width in enumerate(widths):
            for offset in range(width):
                other = place + offset - (width - 1) // 2
                word = tokens[other] if 0 <= other < len(tokens) else PADDING
                row = word * sum(widths) + sum(widths[:window]) + offset
                found[place, window] += sums.table[row]
    return found.reshape(len(tokens), len(widths) * FILTERS)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("widths", [[1], [4], [1, 3, 5], [3, 3], [2, 1]], ids=str)
@pytest.mark.parametrize("tokens", [[], [7], [3, 2, 3], [10, 0, 1, 5, 5, 9, 2, 0]], ids=len)
def test_sums_are_those_of_a_loop(dtype: type, widths: list[int], tokens: list[int]) -> None:
    sums = table_sums(widths, dtype)
    found = sums(np.array(tokens, dtype=np.int32))
    np.testing.assert_allclose(found, slow_sums(sums, tokens), rtol=1e-6)
    assert found.dtype == (np.int16 if dtype == np.int8 else np.float32)


@pytest.mark.parametrize(("width", "kind"), [(256, np.int16), (257, np.int32), (512, np.int32)])
def test_sums_of_wide_windows_fit_into_their_type(width: int, kind: type) -> None:
    sums = table_sums([width], np.int8, extreme=True)
    found = sums(np.array([4] * 600))
    assert found.min() == -127 * width
    assert found.dtype == kind


def test_more_places_than_integers_count_never_reach_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = table_sums([1, 3], np.float32)
    monkeypatch.setattr("nlpcapsule.export.table_sums._MOST", 40)  # 2**31
    assert sums(np.full(8, 4)).shape == (8, 2 * FILTERS)
    with pytest.raises(DataError, match="of 9 tokens is too long for an exported network; rank a shorter"):
        sums(np.full(9, 4))


@pytest.mark.parametrize("token", [-1, WORDS])
def test_a_token_outside_of_the_table_never_reaches_compiled_code(token: int) -> None:
    with pytest.raises(ModelFolderError, match=r"a token is outside the table .*, which has 11 words"):
        table_sums([1, 3], np.int8)(np.array([1, token]))
