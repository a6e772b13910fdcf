"""`python -m benchmarks difference`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import difference
from benchmarks.plan import Plan
from nlpcapsule.errors import ConfigError

PLAN = Plan(
    "made-up",
    "Made up",
    "labels",
    ("d",),
    [{"name": "a", "model": "kim-cnn"}, {"name": "b", "model": "xml-cnn"}],
    seeds=2,
    fractions=(0.5, 1.0),
)


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, float, int], np.ndarray]:
    """Figures per document by system, fraction and seed; a cell without any is not finished."""
    kept: dict[tuple[str, float, int], np.ndarray] = {}
    monkeypatch.setattr(difference, "cell_path", lambda cell, folder: _key(cell))
    monkeypatch.setattr(difference, "load_per_document", lambda key: kept[key])
    monkeypatch.setattr(difference, "finished_cell", lambda cell, folder: _key(cell) in kept or None)
    return kept


def _key(cell) -> tuple[str, float, int]:  # type: ignore[no-untyped-def]
    return cell.system, cell.fraction, cell.seed


def test_seeds_are_averaged_before_documents_are_compared(scores) -> None:  # type: ignore[no-untyped-def]
    scores["a", 1.0, 1] = np.tile([1.0, 0.0, 1.0], (4, 1))
    scores["a", 1.0, 2] = np.tile([0.0, 1.0, 1.0], (4, 1))
    scores["b", 1.0, 1] = np.tile([0.25, 0.25, 0.25], (4, 1))
    found = difference.row_difference(PLAN, Path(), "d", "a", "b")
    assert set(found) == {"P@1", "P@3", "P@5", "nDCG@5"}
    # Means 0.5, 0.5 and 1 less 0.25: at least 0.25 in every resample, at most 0.75.
    assert found["P@1"].difference == pytest.approx((0.25 + 0.25 + 0.75) / 3)
    assert found["P@1"].low >= 0.25
    assert found["P@1"].high <= 0.75


def test_the_growth_of_a_lead_is_that_from_all_documents_to_half(scores) -> None:  # type: ignore[no-untyped-def]
    for fraction, ours in ((0.5, 0.75), (1.0, 0.5)):
        scores["a", fraction, 1] = np.full((4, 3), ours)
        scores["b", fraction, 1] = np.full((4, 3), 0.25)
    found = difference.lead_growth(PLAN, Path(), "d", "a", "b")
    assert found["nDCG@5"].difference == pytest.approx(0.25)


def test_a_row_without_finished_cells_is_named(scores) -> None:  # type: ignore[no-untyped-def]
    scores["a", 1.0, 1] = np.zeros((4, 3))
    with pytest.raises(ConfigError, match="no cell of 'b' on 100% of d is finished"):
        difference.row_difference(PLAN, Path(), "d", "a", "b")
