"""The per-label parameters; the only place that gathers the rows of routed labels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx


class LabelTable(nn.Module):
    """Named tables of learned rows, one row per label.

    Tables are added one by one, so that a network controls the order of its random initialisation. With
    `sparse` the gradients have only the rows that were read, and an optimizer for sparse gradients updates no
    others.

    Example:
        >>> labels = LabelTable(label_count=3)
        >>> labels.add("bias", torch.tensor([-4.0, -5.0, -6.0]))
        >>> labels.rows_of("bias", torch.tensor([2, 0])).tolist()
        [-6.0, -4.0]
    """

    def __init__(self, label_count: int) -> None:
        super().__init__()
        self.label_count, self.sparse = label_count, False

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
        table = self.get_parameter(name)
        if not (self.sparse and torch.is_grad_enabled()):
            return rows_of(table, outputs)
        if outputs is None:
            outputs = torch.arange(len(table), device=table.device)
        return _SparselyGathered.apply(table, outputs)


class _SparselyGathered(torch.autograd.Function):
    """Rows of a table, with a sparse gradient. Torch's embedding has one, but not for tables of numbers."""

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, ids: Tensor) -> Tensor:
        """Return rows (…, *rest) of a table (n, *rest) for ids (…)."""
        ctx.save_for_backward(ids)
        ctx.shape = table.shape  # type: ignore[attr-defined]
        return table[ids]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the table; rows that were read twice are in it twice."""
        (ids,) = ctx.saved_tensors
        values = gradient.reshape(-1, *ctx.shape[1:])
        return torch.sparse_coo_tensor(ids.reshape(1, -1), values, ctx.shape, check_invariants=False), None


def rows_of(table: Tensor, outputs: Tensor | None) -> Tensor:
    """Return the rows (n', …) or (B, n', …) of a table (n, …) for ids (n',) or (B, n'); None for all."""
    if outputs is None:
        return table
    # Shared ids are distinct, so the gradient of `index_select` needs no sorting.
    return table.index_select(0, outputs) if outputs.dim() == 1 else table[outputs]
