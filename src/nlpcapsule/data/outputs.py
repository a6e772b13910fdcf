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
    return hard_outputs(labels, proposals, negatives)


def hard_outputs(labels: Sequence[np.ndarray], nominated: Sequence[np.ndarray], negatives: int) -> Outputs:
    """Return each document's labels and the `negatives` best-scored others of a nominator, padded."""
    rows = [
        np.concatenate([own, proposed[(proposed[:, None] != own).all(axis=1)][:negatives]]).astype(np.int64)
        for own, proposed in zip(labels, nominated, strict=True)
    ]
    width = max(1, max(len(row) for row in rows))
    ids = np.zeros((len(rows), width), dtype=np.int64)
    targets = np.zeros((len(rows), width), dtype=np.float32)
    valid = np.zeros((len(rows), width), dtype=bool)
    for index, (own, row) in enumerate(zip(labels, rows, strict=True)):
        ids[index, : len(row)] = row
        targets[index, : len(own)] = 1.0
        valid[index, : len(row)] = True
    return Outputs(ids, targets, None if valid.all() else valid)


def _targets_over(labels: Sequence[np.ndarray], width: int) -> np.ndarray:
    targets = np.zeros((len(labels), width), dtype=np.float32)
    for row, own in zip(targets, labels, strict=True):
        row[own] = 1.0
    return targets
