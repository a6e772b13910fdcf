"""The difference between two rows of a table, from the stored metrics per document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.cell import Cell, cell_path, finished_cell
from benchmarks.plan import Plan
from nlpcapsule.compare.comparison import paired_differences
from nlpcapsule.compare.record import load_per_document
from nlpcapsule.errors import ConfigError
from nlpcapsule.evaluation.bootstrap import PairedBootstrap


def row_difference(
    plan: Plan, folder: Path, data: str, system: str, rival: str, fraction: float = 1.0
) -> dict[str, PairedBootstrap]:
    """Compare two systems of a table by a paired bootstrap over documents; seeds are averaged first.

    Args:
        plan: The table's plan.
        folder: Folder of finished cells.
        data: The data set.
        system: A row of the table.
        rival: Another one.
        fraction: Fraction of the training documents that both were trained on.

    Returns:
        Figure → the difference, system minus rival, and its interval.
    """
    ours, theirs = (_mean_over_seeds(plan, folder, data, name, fraction) for name in (system, rival))
    return paired_differences(plan.kind, ours, theirs)


def lead_growth(plan: Plan, folder: Path, data: str, system: str, rival: str) -> dict[str, PairedBootstrap]:
    """Return how much larger a system's lead is with half of the training documents than with all."""
    half, whole = (
        _mean_over_seeds(plan, folder, data, system, fraction)
        - _mean_over_seeds(plan, folder, data, rival, fraction)
        for fraction in (0.5, 1.0)
    )
    return paired_differences(plan.kind, half, whole)


def _mean_over_seeds(plan: Plan, folder: Path, data: str, system: str, fraction: float) -> np.ndarray:
    """Return (figures, documents) of a row, the mean over its finished seeds."""
    cells = [cell for cell in plan.cells(only=[system]) if (cell.data, cell.fraction) == (data, fraction)]
    scores = _finished_scores(cells, folder)
    if not scores:
        raise ConfigError(f"no cell of {system!r} on {fraction:.0%} of {data} is finished under {folder}")
    return np.mean(scores, axis=0)


def _finished_scores(cells: Sequence[Cell], folder: Path) -> list[np.ndarray]:
    finished = [cell for cell in cells if finished_cell(cell, folder) is not None]
    return [load_per_document(cell_path(cell, folder)) for cell in finished]
