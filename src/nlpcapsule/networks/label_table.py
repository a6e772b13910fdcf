"""The per-label parameters; the only place that gathers the rows of routed labels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class LabelTable(nn.Module):
    """Named tables of learned rows, one row per label.

    Tables are added one by one, so that a network controls the order of its random initialisation.

    Example:
        >>> labels = LabelTable(label_count=3)
        >>> labels.add("bias", torch.tensor([-4.0, -5.0, -6.0]))
        >>> labels.rows_of("bias", torch.tensor([2, 0])).tolist()
        [-6.0, -4.0]
    """

    def __init__(self, label_count: int) -> None:
        super().__init__()
        self.label_count = label_count

    def add(self, name: str, rows: Tensor) -> None:
        """Add a table that starts from rows (n, …)."""
        if len(rows) != self.label_count:
            raise ValueError(
                f"the table {name!r} needs {self.label_count} rows, one per label; got {len(rows)}"
            )
        self.register_parameter(name, nn.Parameter(rows))

    def add_random(self, name: str, size: int) -> None:
        """Add a table (n, size) of normally distributed rows with an expected squared length of 1."""
        self.add(name, torch.randn(self.label_count, size) / math.sqrt(size))

    def __contains__(self, name: str) -> bool:
        return name in self._parameters

    def rows_of(self, name: str, outputs: Tensor | None) -> Tensor:
        """Return the rows of a table for all labels, or for ids; see `rows_of`."""
        return rows_of(self.get_parameter(name), outputs)


def rows_of(table: Tensor, outputs: Tensor | None) -> Tensor:
    """Return the rows (n', …) or (B, n', …) of a table (n, …) for ids (n',) or (B, n'); None for all."""
    if outputs is None:
        return table
    # Shared ids are distinct, so the gradient of `index_select` needs no sorting.
    return table.index_select(0, outputs) if outputs.dim() == 1 else table[outputs]
