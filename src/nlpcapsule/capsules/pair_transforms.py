"""The matrices W_ij of all pairs of condensed capsule and output, stored output by output."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.capsules.votes import FormedVotes, PairwiseVotes

# Values of W gathered at once if documents have different outputs: 256 MiB of float32.
_GATHERED = 2**26


class PairTransforms(nn.Module):
    """W (n, m, d, d), one row of m·d·d numbers per output: 32,768 with 128 capsules of size 16.

    W starts from N(0, deviation²). Only the rows of routed outputs are read. With `sparse` the gradient has
    only these rows, and an optimizer for sparse gradients updates no others.
    """

    def __init__(self, outputs: int, inputs: int, size: int, deviation: float, sparse: bool = False) -> None:
        super().__init__()
        self.inputs, self.size, self.sparse = inputs, size, sparse
        self.rows = nn.Parameter(torch.randn(outputs, inputs * size * size) * deviation)

    def forward(self, capsules: Tensor, outputs: Tensor | None = None) -> FormedVotes:
        """Compute û_{j|i} = W_ij u_i of capsules u (B, m, d).

        For all outputs, or for ids (n',), ascending, or (B, n').
        """
        if outputs is None or outputs.dim() == 1:
            return PairwiseVotes(capsules, self.gather(outputs))
        # The rows of a batch may take gigabytes: process few documents at a time and keep only the votes.
        documents = max(1, _GATHERED // max(1, outputs.shape[1] * self.rows.shape[1]))
        parts = [
            PairwiseVotes(some, self.gather(ids)).formed
            for some, ids in zip(capsules.split(documents), outputs.split(documents), strict=True)
        ]
        return FormedVotes(parts[0] if len(parts) == 1 else torch.cat(parts))

    def gather(self, outputs: Tensor | None) -> Tensor:
        """Return W of these outputs, (…, m, d, d)."""
        rows: Tensor = self.rows
        if outputs is None and self.sparse and torch.is_grad_enabled():
            outputs = torch.arange(len(rows), device=rows.device)  # a sparse gradient of all rows
        if outputs is not None and outputs.dim() == 1 and self.sparse:
            rows = _DistinctRows.apply(rows, outputs)
        elif outputs is not None:
            rows = F.embedding(outputs, rows, sparse=self.sparse)  # (…, m·d·d)
        return rows.unflatten(-1, (self.inputs, self.size, self.size))


class _DistinctRows(torch.autograd.Function):
    """Rows of a table for ascending ids, with a sparse gradient that need not be summed and sorted."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor) -> Tensor:
        """Return rows (n', …) of a table (n, …) for ids (n',)."""
        ctx.ids, ctx.shape = ids, table.shape
        return table.index_select(0, ids)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the table, with these rows alone."""
        return gradient_of_rows(ctx.ids, gradient, ctx.shape), None


def gradient_of_rows(ids: Tensor, gradient: Tensor, shape: torch.Size) -> Tensor:
    """Return the sparse gradient of a table (n, …) with values (n', …) in the rows of ascending ids (n',)."""
    # Autograd copies a gradient with strided indices; it keeps others, but forgets that it is coalesced.
    indices = ids.repeat(2, 1).T.flatten()[::2].unsqueeze(0)
    return torch.sparse_coo_tensor(indices, gradient, shape, check_invariants=False, is_coalesced=True)
