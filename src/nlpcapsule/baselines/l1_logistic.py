"""Sparse logistic regression: the separator of a FastXML node."""

from __future__ import annotations

import numpy as np

from nlpcapsule.baselines.compiled import compiled

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]  # of a sparse matrix, as in scipy: indptr, indices, data


@compiled
def l1_logistic(
    columns: Entries, sides: np.ndarray, prices: np.ndarray, tolerance: float, most_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise f(w) = ‖w‖₁ + Σ_i C_i log(1 + exp(−δ_i wᵀx_i)) by newGLMNET (Yuan et al. 2012).

    A step finds a direction by coordinate descent on the second-order model of f, over the weights that are
    not 0 or have a gradient away from 0, and halves it until f decreases enough.

    Args:
        columns: The documents' features, column by column.
        sides: (N,) δ.
        prices: (N,) C_i.
        tolerance: Stop when the violation of the optimality conditions, relative to w = 0, is this small.
        most_steps: Maximum number of steps.

    Returns:
        w (columns,) and wᵀx_i (N,).
    """
    starts, members, values = columns
    weights = np.zeros(len(starts) - 1)
    margins = np.zeros(len(sides))
    gradients = np.zeros(len(weights))
    curvatures = np.zeros(len(weights))
    first_violation = 0.0
    for step in range(most_steps):
        wrong = 1 / (1 + np.exp(sides * margins))  # the probability given to the other side
        slopes = -prices * sides * wrong  # of the loss along the margin
        bends = prices * wrong * (1 - wrong)
        violation = 0.0
        active = []
        for j in range(len(weights)):
            gradient = curvature = 0.0
            for entry in range(starts[j], starts[j + 1]):
                gradient += values[entry] * slopes[members[entry]]
                curvature += values[entry] ** 2 * bends[members[entry]]
            gradients[j], curvatures[j] = gradient, curvature + 1e-12
            if weights[j] != 0:
                violation += abs(gradient + np.sign(weights[j]))
                active.append(j)
            elif abs(gradient) > 1:
                violation += abs(gradient) - 1
                active.append(j)
        if step == 0:
            first_violation = violation
        if violation <= tolerance * first_violation:
            break
        direction, change = _descent_direction(
            columns, weights, gradients, curvatures, bends, np.array(active)
        )
        if not _line_search(weights, margins, direction, change, gradients, sides, prices):
            break
    return weights, margins


@compiled
def _descent_direction(
    columns: Entries,
    weights: np.ndarray,
    gradients: np.ndarray,
    curvatures: np.ndarray,
    bends: np.ndarray,
    active: np.ndarray,
    most_passes: int = 30,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise f's second-order model approximately: d (columns,) and dᵀx_i (N,)."""
    starts, members, values = columns
    direction = np.zeros(len(weights))
    change = np.zeros(len(bends))
    first_moved = 0.0
    for turn in range(most_passes):
        moved = 0.0
        for j in active:
            slope = gradients[j]
            for entry in range(starts[j], starts[j + 1]):
                slope += values[entry] * bends[members[entry]] * change[members[entry]]
            weight, curvature = weights[j] + direction[j], curvatures[j]
            if slope + 1 < curvature * weight:
                by = -(slope + 1) / curvature
            elif slope - 1 > curvature * weight:
                by = -(slope - 1) / curvature
            else:
                by = -weight  # the kink of |w_j|
            by = min(max(by, -10.0), 10.0)
            if by != 0:
                moved += abs(by) * curvature
                direction[j] += by
                for entry in range(starts[j], starts[j + 1]):
                    change[members[entry]] += by * values[entry]
        if turn == 0:
            first_moved = moved
        if moved <= 0.1 * first_moved:
            break
    return direction, change


@compiled
def _line_search(
    weights: np.ndarray,
    margins: np.ndarray,
    direction: np.ndarray,
    change: np.ndarray,
    gradients: np.ndarray,
    sides: np.ndarray,
    prices: np.ndarray,
) -> bool:
    """Move weights and margins along the direction by the first of 1, ½, ¼, … that decreases f enough."""
    before = np.abs(weights).sum() + (prices * np.logaddexp(0.0, -sides * margins)).sum()
    promised = (gradients * direction).sum() + np.abs(weights + direction).sum() - np.abs(weights).sum()
    size = 1.0
    for _ in range(20):
        loss = (prices * np.logaddexp(0.0, -sides * (margins + size * change))).sum()
        if np.abs(weights + size * direction).sum() + loss - before <= 0.01 * size * promised:
            weights += size * direction
            margins += size * change
            return True
        size /= 2
    return False
