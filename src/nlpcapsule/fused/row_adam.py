"""`RowAdam`, which updates the rows in sparse gradients: on a GPU in one kernel per table."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from nlpcapsule.fused.trial import works

_BLOCK = 1024  # numbers of a row that a program updates


class RowAdam(torch.optim.Optimizer):
    """Adam without momentum, on the rows in a sparse gradient g alone.

    v_r ← β₂ v_r + (1 - β₂) g_r²;   x_r ← x_r - η √(1 - β₂ᵗ) g_r / (√v_r + ε)      for rows r read in step t

    It computes what `torch.optim.SparseAdam` does for β₁ = 0, with a third of its operations and half of its
    state. There is no momentum because a rarely read row would lose most of an update that is spread over
    later steps. The correction √(1 - β₂ᵗ) counts the steps of all rows: a row that is first read late moves
    by about 1 / √(1 - β₂) = 30 times the learning rate, and by less each time, as in Adagrad. AdamW moves
    such a row as far in total, spread over the steps that follow.
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, beta2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "beta2": beta2, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the rows that the gradients have."""
        for group in self.param_groups:
            tables = [table for table in group["params"] if table.grad is not None]
            if not tables:
                continue
            for table in tables:
                if not self.state[table]:
                    self.state[table] |= {"step": 0, "exp_avg_sq": torch.zeros_like(table)}
                self.state[table]["step"] += 1
            states = [self.state[table] for table in tables]
            rates = [group["lr"] * math.sqrt(1 - group["beta2"] ** state["step"]) for state in states]
            gradients = [table.grad.coalesce() for table in tables]
            rows = [gradient.indices()[0] for gradient in gradients]  # (r,) of each table
            values = [gradient.values() for gradient in gradients]  # (r, …)
            moments = [state["exp_avg_sq"] for state in states]
            if tables[0].is_cuda and works(_trial, "cuda"):
                for table, moment, own, value, rate in zip(tables, moments, rows, values, rates, strict=True):
                    update_rows(table, moment, own, value, rate, group["beta2"], group["eps"])
                continue
            # Each operation on all tables at once: a GPU spends longer on starting it than on the rows.
            squares = [moment.index_select(0, own) for moment, own in zip(moments, rows, strict=True)]
            torch._foreach_lerp_(squares, torch._foreach_mul(values, values), 1 - group["beta2"])
            for moment, own, square in zip(moments, rows, squares, strict=True):
                moment.index_copy_(0, own, square)
            torch._foreach_sqrt_(squares)
            torch._foreach_add_(squares, group["eps"])
            changes = torch._foreach_div(values, squares)
            for table, own, change, rate in zip(tables, rows, changes, rates, strict=True):
                table.index_add_(0, own, change, alpha=-rate)


@torch.no_grad()
def update_rows(
    table: Tensor, squares: Tensor, rows: Tensor, gradients: Tensor, rate: float, beta2: float, eps: float
) -> None:
    """Update rows (r,) of a table (n, …) and its state v (n, …) in place, with gradients (r, …)."""
    from nlpcapsule.fused.row_kernel import update

    width = table[0].numel()
    block = min(_BLOCK, 1 << (width - 1).bit_length())
    grid = (len(rows), -(-width // block))
    if len(rows):
        update[grid](table, squares, rows, gradients.contiguous(), width, rate, 1 - beta2, eps, BLOCK=block)


def _trial(device: str) -> None:
    table, rows = torch.zeros(2, 2, device=device), torch.zeros(1, dtype=torch.int64, device=device)
    update_rows(table, torch.ones_like(table), rows, table[:1].clone(), 1.0, 0.9, 1.0)
