"""Adam for tables of which a step reads a few rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch


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
            for table in group["params"]:
                if table.grad is None:
                    continue
                state = self.state[table]
                if not state:
                    state["step"], state["exp_avg_sq"] = 0, torch.zeros_like(table)
                state["step"] += 1
                gradient = table.grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()  # (r,), (r, …)
                squares = state["exp_avg_sq"][rows].lerp_(values.square(), 1 - group["beta2"])
                state["exp_avg_sq"].index_copy_(0, rows, squares)
                rate = group["lr"] * math.sqrt(1 - group["beta2"] ** state["step"])
                table.index_add_(0, rows, values / squares.sqrt_().add_(group["eps"]), alpha=-rate)
