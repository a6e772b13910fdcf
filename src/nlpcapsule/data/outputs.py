"""Partial routing: choose the outputs D⁺ ∪ D⁻ of a document in training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Outputs:
    """The outputs of a batch and their targets."""

    ids: np.ndarray | None  # (n',) shared by the batch, ascending, or (B, n') per document; None: all labels
    targets: np.ndarray  # (B, n') float32: 1 for a document's labels
    valid: np.ndarray | None = None  # (B, n') bool, False at padding; None without padding


def all_outputs(labels: Sequence[np.ndarray], label_count: int) -> Outputs:
    """Return all labels as outputs of every document."""
    return Outputs(None, _targets_over(labels, label_count))


def batch_outputs(labels: Sequence[np.ndarray], label_count: int) -> Outputs:
    """Return the labels of all documents of the batch; other documents' labels are negatives."""
    union = np.unique(np.concatenate(labels)).astype(np.int64)
    if len(union) == 0:  # a batch without any label still needs outputs as negatives
        union = np.zeros(1, dtype=np.int64)
    position = np.full(label_count, -1, dtype=np.int64)
    position[union] = np.arange(len(union))
    return Outputs(union, _targets_over([position[row] for row in labels], len(union)))


def uniform_outputs(
    labels: Sequence[np.ndarray], label_count: int, negatives: int, generator: np.random.Generator
) -> Outputs:
    """Return each document's labels and `negatives` others drawn uniformly."""
    proposals = [
        generator.choice(label_count, size=min(label_count, negatives + len(row)), replace=False)
        for row in labels
    ]
    return hard_outputs(labels, _padded(proposals), negatives)


def hard_outputs(labels: Sequence[np.ndarray], nominated: np.ndarray, negatives: int) -> Outputs:
    """Return each document's labels and the `negatives` best-scored others of a nominator, padded.

    `nominated` (B, C) are the nominator's labels, best first; -1 is none.
    """
    own = _padded(labels)  # (B, m)
    is_negative = nominated >= 0  # (B, C)
    for column in own.T:
        is_negative &= nominated != column[:, None]
    number = np.cumsum(is_negative, axis=1)  # of each among the negatives, from 1
    is_negative &= number <= negatives
    own_count = np.array([len(row) for row in labels], dtype=np.int64)[:, None]  # (B, 1)
    count = own_count + is_negative.sum(axis=1, keepdims=True)
    place = np.arange(max(1, int(count.max())))  # (n',)
    ids = np.zeros((len(labels), len(place)), dtype=np.int64)
    ids[:, : own.shape[1]] = np.where(own >= 0, own, 0)
    rows = np.broadcast_to(np.arange(len(labels))[:, None], is_negative.shape)
    ids[rows[is_negative], (own_count + number - 1)[is_negative]] = nominated[is_negative]
    valid = place < count
    return Outputs(ids, (place < own_count).astype(np.float32), None if valid.all() else valid)


def _padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return rows of different lengths as (B, longest) int64, -1 at padding."""
    padded = np.full((len(rows), max((len(row) for row in rows), default=0)), -1, dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return padded


def _targets_over(labels: Sequence[np.ndarray], width: int) -> np.ndarray:
    targets = np.zeros((len(labels), width), dtype=np.float32)
    for row, own in zip(targets, labels, strict=True):
        row[own] = 1.0
    return targets
