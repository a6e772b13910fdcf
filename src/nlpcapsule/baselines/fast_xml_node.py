"""A node of FastXML: assign documents to two sides and learn a separator.

A node puts each document i on a side δ_i ∈ {−1, +1}, and learns a sparse separator w of the sides
and a ranking r± of all labels for each side, so as to minimise

    ‖w‖₁ + Σ_i C_δ(δ_i) log(1 + exp(−δ_i wᵀx_i)) − C_r Σ_i nDCG(r^{δ_i}, y_i),
    nDCG(r, y) = I(y) Σ_l y_{r_l} / log₂(1 + l),        I(y) = 1 / Σ_{l=1..|y|} 1 / log₂(1 + l)

alternately, from random sides and w = 0:

    r±  = labels by falling Σ_{i: δ_i = ±1} I(y_i) y_i              the best ranking for a side's documents
    δ_i = sign(nDCG(r⁺, y_i) − nDCG(r⁻, y_i))                       while w = 0, both sides have the same loss
    w   = the minimum of the first two terms                        once, when the sides stay as they are

The documents are then split by the sign of wᵀx. C_δ(±1) = C N / 2N_±, so that a small side counts as much as
a large one. The paper may continue to alternate, with the loss in the choice of δ; here w is learned once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from nlpcapsule.baselines.compiled import compiled
from nlpcapsule.baselines.l1_logistic import Entries, l1_logistic

if TYPE_CHECKING:
    from nlpcapsule.baselines.fast_xml import FastXMLSettings

_TIE = 1e-9  # smaller gains are rounding errors: the document stays on its side, so that the iteration ends
_TOLERANCE, _MOST_STEPS = 0.01, 30  # of a node's separator


def part(
    features: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    rows: np.ndarray,
    settings: FastXMLSettings,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return a node's separator and the resulting split of its documents.

    Returns:
        The columns of w that are not 0, their values, and which documents go right, (len(rows),) bool; None
        if all go the same way.
    """
    sides = 2 * random.integers(2, size=len(rows)) - 1  # δ (N,)
    held = labels[rows]
    seen, local = np.unique(held.indices, return_inverse=True)  # labels of the node, renumbered
    sides, _ = settle_sides(held.indptr, local, len(seen), sides)
    on_right = int((sides > 0).sum())
    if on_right in (0, len(rows)):
        return None
    prices = settings.C * len(rows) / (2 * np.where(sides > 0, on_right, len(rows) - on_right))  # (N,)
    columns, entries = node_columns(entries_of(features), features.shape[1], rows)
    weights, margins = l1_logistic(entries, sides, prices, _TOLERANCE, _MOST_STEPS)
    goes_right = margins > 0
    if goes_right.all() or not goes_right.any():
        return None
    kept = weights != 0
    return columns[kept], weights[kept], goes_right


@compiled
def settle_sides(
    starts: np.ndarray, labels: np.ndarray, label_count: int, sides: np.ndarray
) -> tuple[np.ndarray, list[float]]:
    """Rank labels and choose sides alternately, until no document changes its side.

    Args:
        starts: (N + 1,) where each document's labels begin.
        labels: The documents' labels, one document after another.
        label_count: n.
        sides: (N,) −1 or +1, the initial sides.

    Returns:
        Sides (N,), and Σ_i nDCG(r^{δ_i}, y_i) after each turn.
    """
    sides = sides.copy()
    ideal = inverse_ideal_gains(starts)
    history = []
    moved = True
    while moved:
        left = rank_discounts(starts, labels, label_count, ideal * (sides < 0))
        right = rank_discounts(starts, labels, label_count, ideal * (sides > 0))
        moved, gained = False, 0.0
        for i in range(len(sides)):
            on_left = on_right = 0.0
            for label in labels[starts[i] : starts[i + 1]]:
                on_left += left[label]
                on_right += right[label]
            on_left, on_right = ideal[i] * on_left, ideal[i] * on_right
            if abs(on_right - on_left) > _TIE:
                side = 1 if on_right > on_left else -1
                moved = moved or side != sides[i]
                sides[i] = side
            gained += on_right if sides[i] > 0 else on_left
        history.append(gained)
    return sides, history


@compiled
def inverse_ideal_gains(starts: np.ndarray) -> np.ndarray:
    """Return I(y_i) of each document, (N,); 0 without labels."""
    inverse = np.zeros(len(starts) - 1)
    for i in range(len(inverse)):
        gain = 0.0
        for place in range(starts[i + 1] - starts[i]):
            gain += 1 / np.log2(2.0 + place)
        if gain > 0:
            inverse[i] = 1 / gain
    return inverse


@compiled
def rank_discounts(
    starts: np.ndarray, labels: np.ndarray, label_count: int, importance: np.ndarray
) -> np.ndarray:
    """Return the ranking with the highest total nDCG, as 1 / log₂(1 + l) for the label at place l, (n,).

    Args:
        starts: (N + 1,) where each document's labels begin.
        labels: The documents' labels, one document after another.
        label_count: n.
        importance: (N,) I(y_i) of the side's documents, 0 for the others.
    """
    totals = np.zeros(label_count)
    for i in range(len(importance)):
        if importance[i] > 0:
            for label in labels[starts[i] : starts[i + 1]]:
                totals[label] += importance[i]
    discounts = np.empty(label_count)
    for place, label in enumerate(np.argsort(-totals, kind="mergesort")):  # stable: ties are broken by label
        discounts[label] = 1 / np.log2(2.0 + place)
    return discounts


@compiled
def node_columns(features: Entries, width: int, rows: np.ndarray) -> tuple[np.ndarray, Entries]:
    """Return the non-empty columns of the chosen rows, ascending, and their entries, column by column."""
    indptr, indices, data = features
    sizes = np.zeros(width, dtype=np.int64)
    for row in rows:
        for entry in range(indptr[row], indptr[row + 1]):
            sizes[indices[entry]] += 1
    columns = np.flatnonzero(sizes)
    starts = np.zeros(len(columns) + 1, dtype=np.int64)
    starts[1:] = np.cumsum(sizes[columns])
    nexts = sizes  # from here on: where a column's next entry goes
    nexts[columns] = starts[:-1]
    members = np.empty(starts[-1], dtype=np.int32)
    values = np.empty(starts[-1])
    for i, row in enumerate(rows):
        for entry in range(indptr[row], indptr[row + 1]):
            place = nexts[indices[entry]]
            members[place], values[place] = i, data[entry]
            nexts[indices[entry]] += 1
    return columns, (starts, members, values)


def entries_of(matrix: sparse.csr_matrix) -> Entries:
    """Return a matrix in the format of compiled code."""
    return matrix.indptr, matrix.indices, matrix.data
