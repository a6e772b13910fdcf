"""Visit documents to solve PD-Sparse's dual; `pd_sparse` has the equations.

Xᵀα is stored per word, for the labels seen with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from nlpcapsule.baselines.compiled import compiled

_SPARE_SLOTS = 1.5  # slots of a word's table per label, which keeps probing short
_EMPTY = -1


class Rows(NamedTuple):
    """A sparse matrix for numba: row i is `ids` and `values` from starts[i] to starts[i + 1]."""

    starts: np.ndarray
    ids: np.ndarray
    values: np.ndarray


class WordTable(NamedTuple):
    """Xᵀα: word j's labels and sums, hashed by label, from starts[j] to starts[j + 1].

    A word with as many slots as there are labels is addressed directly.
    """

    starts: np.ndarray
    labels: np.ndarray
    sums: np.ndarray


def one_pass(
    rows: sparse.csr_matrix,
    right: sparse.csr_matrix,
    alpha: sparse.csr_matrix,
    order: np.ndarray,
    l1: float,
    penalty: float,
) -> sparse.csr_matrix:
    """Visit each document once.

    Xᵀα is recomputed, so that a pass depends only on its arguments.

    Args:
        rows: (N, V) float32, X.
        right: (N, n), not 0 where a label is right.
        alpha: (N, n) float64, α before the pass.
        order: (N,) the documents in the order of their visits.
        l1: λ.
        penalty: C.

    Returns:
        α after the pass, without zeros.
    """
    x, y, a = (Rows(matrix.indptr, matrix.indices, matrix.data) for matrix in (rows, right, alpha))
    by_word = rows.tocsc()
    met = labels_met(by_word.indptr, by_word.indices, y, a, right.shape[1])  # (V,)
    met += np.diff(by_word.indptr)  # each visit activates at most one more label
    slots = np.minimum(np.ceil(_SPARE_SLOTS * met).astype(np.int64), right.shape[1])
    starts = np.concatenate([[0], np.cumsum(slots)])
    table = WordTable(
        starts, np.full(starts[-1], _EMPTY, dtype=np.int32), np.zeros(starts[-1], dtype=np.float32)
    )
    sum_up(x, a, table)
    room = np.diff(right.indptr) + np.diff(alpha.indptr) + 1
    after = Rows(np.concatenate([[0], np.cumsum(room)]), np.zeros(room.sum(), np.int32), np.zeros(room.sum()))
    visit_all(order, x, y, a, after, table, right.shape[1], np.float32(l1), penalty)
    result = sparse.csr_matrix((after.values, after.ids, after.starts), shape=right.shape)
    result.eliminate_zeros()
    return result


@compiled
def labels_met(starts, documents, y, a, label_count):  # type: ignore[no-untyped-def]
    """Count, for each word (V,), the labels that are right or have α ≠ 0 in documents with that word."""
    counts = np.zeros(len(starts) - 1, dtype=np.int64)
    last_word = np.full(label_count, -1)
    for word in range(len(starts) - 1):
        for i in documents[starts[word] : starts[word + 1]]:
            for labels in (y.ids[y.starts[i] : y.starts[i + 1]], a.ids[a.starts[i] : a.starts[i + 1]]):
                for label in labels:
                    if last_word[label] != word:
                        last_word[label] = word
                        counts[word] += 1
    return counts


@compiled
def add(table, word, label, amount):  # type: ignore[no-untyped-def]
    """Add to (Xᵀα)_jk."""
    start, slots = table.starts[word], table.starts[word + 1] - table.starts[word]
    slot = label % slots
    while table.labels[start + slot] != label and table.labels[start + slot] != _EMPTY:
        slot = (slot + 1) % slots
    table.labels[start + slot] = label
    table.sums[start + slot] += amount


@compiled
def sum_up(x, a, table):  # type: ignore[no-untyped-def]
    """Fill the empty table with Xᵀα."""
    for i in range(len(x.starts) - 1):
        for at in range(x.starts[i], x.starts[i + 1]):
            for place in range(a.starts[i], a.starts[i + 1]):
                add(table, x.ids[at], a.ids[place], x.values[at] * a.values[place])


@compiled
def score(words, weights, table, l1, z):  # type: ignore[no-untyped-def]
    """Set z_k = Σ_j x_j S_λ((Xᵀα)_jk) for all labels; z's last place takes what empty slots would add."""
    z[:] = 0
    for word, weight in zip(words, weights):  # noqa: B905 - numba's zip has no `strict`
        labels = table.labels[table.starts[word] : table.starts[word + 1]]
        sums = table.sums[table.starts[word] : table.starts[word + 1]]
        if len(sums) == len(z) - 1:  # addressed directly: no look-up, so several labels at a time
            for k in range(len(sums)):
                z[k] += weight * soft(sums[k], l1)
        else:
            for slot in range(len(sums)):
                z[labels[slot]] += weight * soft(sums[slot], l1)


@compiled
def soft(value, l1):  # type: ignore[no-untyped-def]
    """Return S_λ without a branch: it is the innermost step of scoring."""
    return value - min(max(value, -l1), l1)


@compiled
def visit_all(order, x, y, a, after, table, label_count, l1, penalty):  # type: ignore[no-untyped-def]
    """Run steps 1 to 4 for each document, and write the new α into `after`."""
    z, alpha = np.zeros(label_count + 1, dtype=np.float32), np.zeros(label_count)
    is_right = np.zeros(label_count, dtype=np.bool_)
    for i in order:
        words, weights = x.ids[x.starts[i] : x.starts[i + 1]], x.values[x.starts[i] : x.starts[i + 1]]
        right = y.ids[y.starts[i] : y.starts[i + 1]]
        if len(words) == 0 or len(right) == 0 or len(right) == label_count:
            continue  # it has nothing to learn from
        curvature = 0.0
        for weight in weights:
            curvature += weight * weight
        score(words, weights, table, l1, z)
        is_right[right] = True
        worst = -1
        for k in range(label_count):
            if not is_right[k] and (worst < 0 or z[k] > z[worst]):
                worst = k
        active = after.ids[after.starts[i] : after.starts[i + 1]]  # right labels, then wrong ones
        active[: len(right)] = right
        count = len(right)
        for place in range(a.starts[i], a.starts[i + 1]):
            k = a.ids[place]
            alpha[k] = a.values[place]
            if not is_right[k]:
                active[count] = k
                count += 1
        if alpha[worst] == 0:
            active[count] = worst
            count += 1
        active = active[:count]
        up, down = active[: len(right)], active[len(right) :]
        rise, fall = nearest_allowed(
            alpha[up] - z[up] / curvature, -alpha[down] + (z[down] + 1) / curvature, penalty
        )
        new = after.values[after.starts[i] : after.starts[i] + count]
        new[: len(right)], new[len(right) :] = rise, -fall
        for k, value in zip(active, new):  # noqa: B905
            if value != alpha[k]:
                for word, weight in zip(words, weights):  # noqa: B905
                    add(table, word, k, weight * (value - alpha[k]))
            alpha[k] = 0
        is_right[right] = False


@compiled
def nearest_allowed(b, c, penalty):  # type: ignore[no-untyped-def]
    """Return the u, v ≥ 0 with Σu = Σv ≤ C that are nearest to b, c.

    While C does not bind, u = (b − m)₊ and v = (c + m)₊ with the m at which both sums are equal. Their
    difference falls with m and is linear between the b_k and the −c_k, so the root is found exactly.
    """
    if b.max() + c.max() <= 0:
        return np.zeros(len(b)), np.zeros(len(c))
    bends = np.sort(np.concatenate((b, -c)))
    low, high = 0, len(bends) - 1  # the difference is ≥ 0 at the lowest bend and ≤ 0 at the highest
    while high - low > 1:
        middle = (low + high) // 2
        if difference(b, c, bends[middle]) >= 0:
            low = middle
        else:
            high = middle
    above, below = difference(b, c, bends[low]), difference(b, c, bends[high])
    m = bends[low]
    if above > below:
        m += (bends[high] - bends[low]) * above / (above - below)
    u = np.maximum(b - m, 0)
    if u.sum() <= penalty:
        return u, np.maximum(c + m, 0)
    return nearest_with_sum(b, penalty), nearest_with_sum(c, penalty)


@compiled
def difference(b, c, m):  # type: ignore[no-untyped-def]
    """Return Σ(b − m)₊ − Σ(c + m)₊."""
    return np.maximum(b - m, 0).sum() - np.maximum(c + m, 0).sum()


@compiled
def nearest_with_sum(b, total):  # type: ignore[no-untyped-def]
    """Return the u ≥ 0 with Σu = total that is nearest to b: (b − m)₊, m from the b_k above it."""
    largest_first = -np.sort(-b)
    running, m = 0.0, 0.0
    for count, value in enumerate(largest_first):
        running += value
        if value > (running - total) / (count + 1):
            m = (running - total) / (count + 1)
    return np.maximum(b - m, 0)
