"""The per-label parameters; the only place that gathers the rows of routed labels.

If labels have names, they also get a score by name:

    x         = mean of the document's states, or of its word vectors weighed by idf               (B, E)
    logit_j  += γ cos(A x + a, name_j) / √(1 + n_j)      similarity to its name                    (B, n)

name_j (E) is fixed: the vector that the encoder gives the name before training, less the mean of all names,
scaled to length 1. A, a and γ are learned and shared by all labels. A starts as the identity, and a subtracts
the mean of the documents. The more training documents n_j a label has, the less its name counts.

The log-odds of a label without examples are γ' cos(A' x + a', name_j) + β'. These weights are learned from
labels with examples, each treated as if it had none, by a separate loss that changes no other weights. Labels
without examples are rarer: by Good and Turing's estimate, as many documents again would bring n₁/n₀ examples
of each (n₁: labels with one example, n₀: with none), and β' is lowered accordingly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_FIRST_GAIN, _FIRST_BIAS = 10.0, -8.0  # a cosine of 0.8 corresponds to even odds


class LabelTable(nn.Module):
    """Named tables of learned rows, one row per label.

    Tables are added one by one, so that a network controls the order of its random initialisation. With
    `sparse` the gradients have only the rows that were read, and an optimizer for sparse gradients updates no
    others.

    Example:
        >>> labels = LabelTable(label_count=3)
        >>> labels.add("bias", torch.tensor([-4.0, -5.0, -6.0]))
        >>> labels.rows_of(torch.tensor([2, 0]))["bias"].tolist()
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

    def rows_of(self, outputs: Tensor | None) -> dict[str, Tensor]:
        """Return the rows of every table, by its name, for all labels, or for ids; see `rows_of`."""
        tables: dict[str, Tensor] = dict(self.named_parameters(recurse=False))
        if not (self.sparse and torch.is_grad_enabled()):
            return {name: rows_of(table, outputs) for name, table in tables.items()}
        if outputs is None:
            outputs = torch.arange(self.label_count, device=next(iter(tables.values())).device)
        return dict(zip(tables, _SparselyGathered.apply(outputs, *tables.values()), strict=True))


class _SparselyGathered(torch.autograd.Function):
    """Rows of tables, with sparse gradients. A GPU waits once a step, for the number of distinct ids."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, *tables: Tensor) -> tuple[Tensor, ...]:
        """Return rows (…, *rest) of tables (n, *rest) for ids (…)."""
        ctx.set_materialize_grads(False)  # rows that are not used have none
        in_order, ctx.order = ids.flatten().sort(stable=True)  # (k,)
        ctx.distinct, ctx.counts = in_order.unique_consecutive(return_counts=True)  # (r,)
        ctx.shapes = [table.shape for table in tables]
        return tuple(table[ids] for table in tables)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the gradients of the tables, with a row for each distinct id; sums have a fixed order."""
        parts = [each.reshape(len(ctx.order), -1) for each in gradients if each is not None]
        values = torch.cat(parts, dim=1).index_select(0, ctx.order)  # (k, …)
        # `unsafe` omits the check of the counts, for which a GPU would wait.
        sums = torch.segment_reduce(values, "sum", lengths=ctx.counts, axis=0, unsafe=True)  # (r, …)
        # Autograd copies such strided parts. It keeps contiguous values, but forgets that rows are distinct.
        found = iter(sums.split([part.shape[1] for part in parts], dim=1))
        rows = ctx.distinct.unsqueeze(0)
        return None, *(
            None if gradient is None else _sparse(rows, next(found), shape)
            for gradient, shape in zip(gradients, ctx.shapes, strict=True)
        )


def _sparse(rows: Tensor, values: Tensor, shape: torch.Size) -> Tensor:
    """Return a gradient of a table (n, *rest) with values (r, …) in rows (1, r), which are ascending."""
    values = values.reshape(-1, *shape[1:])
    return torch.sparse_coo_tensor(rows, values, shape, check_invariants=False, is_coalesced=True)


def rows_of(table: Tensor, outputs: Tensor | None) -> Tensor:
    """Return the rows (n', …) or (B, n', …) of a table (n, …) for ids (n',) or (B, n'); None for all."""
    if outputs is None:
        return table
    if outputs.dim() == 1:  # shared ids are distinct, so the gradient of `index_select` needs no sorting
        return table.index_select(0, outputs)
    if outputs.device.type != "cpu":
        return table[outputs]
    rows = nn.functional.embedding(outputs, table.reshape(len(table), -1))  # threads add gradients in order
    return rows.view(*outputs.shape, *table.shape[1:])


class NameLikeness(nn.Module):
    """Similarity γ cos(A x + a, name_j) of documents and names."""

    def __init__(self, name_size: int) -> None:
        super().__init__()
        self.place = nn.Linear(name_size, name_size)  # A, a
        nn.init.eye_(self.place.weight)
        nn.init.zeros_(self.place.bias)
        self.log_gain = nn.Parameter(torch.tensor(math.log(_FIRST_GAIN)))  # log γ, so that steps are relative

    def forward(self, document: Tensor, names: Tensor) -> Tensor:
        """Return (B, n) for documents (B, E) and names (n, E) or (B, n, E)."""
        with torch.autocast(document.device.type, enabled=False):  # γ would amplify rounding errors
            place = nn.functional.normalize(self.place(document.float()), dim=-1)  # (B, E)
            if names.dim() == 2:
                return self.log_gain.exp() * (place @ names.T)
            return self.log_gain.exp() * (names @ place.unsqueeze(-1)).squeeze(-1)


class LabelNameTable(nn.Module):
    """The labels' names as fixed vectors (n, E), and the learned scores by name."""

    names: Tensor
    has_examples: Tensor
    weight: Tensor
    rarity: Tensor

    def __init__(self, label_count: int, name_size: int) -> None:
        super().__init__()
        self.register_buffer("names", torch.zeros(label_count, name_size))
        self.register_buffer("has_examples", torch.ones(label_count, dtype=torch.bool))
        self.register_buffer("weight", torch.ones(label_count))  # 1 / √(1 + n_j)
        self.register_buffer("rarity", torch.zeros(()))
        self.with_examples = NameLikeness(name_size)  # A, a, γ
        self.alone = NameLikeness(name_size)  # A', a', γ'
        self.bias = nn.Parameter(torch.tensor(_FIRST_BIAS))  # β'

    def set(self, names: np.ndarray, counts: np.ndarray, middle: Tensor) -> None:
        """Set the labels' name vectors (n, E), numbers of examples (n,), and the documents' mean (E,)."""
        for likeness in (self.with_examples, self.alone):
            likeness.place.bias.copy_(-middle)
        self.names.copy_(torch.from_numpy(names))
        self.has_examples.copy_(torch.from_numpy(counts > 0))
        self.weight.copy_(torch.from_numpy(1 / np.sqrt(1 + counts)))
        self.rarity.fill_(log_rarity(counts))

    def forward(self, own: Tensor, document: Tensor, outputs: Tensor | None) -> tuple[Tensor, Tensor]:
        """Add the scores by name to log-odds (B, n) without names, of documents x (B, E).

        Returns (B, n) log-odds, and (B, n) those by name alone, as if no label had examples.
        """
        names, weight, has_examples = (
            rows_of(table, outputs) for table in (self.names, self.weight, self.has_examples)
        )
        by_name = self.alone(document.detach(), names) + self.bias
        joined = own + weight * self.with_examples(document, names)
        return torch.where(has_examples, joined, by_name + self.rarity), by_name


def log_rarity(counts: np.ndarray) -> float:
    """Return the log of how much rarer labels without examples are than those with; at most 0.

    Example:
        >>> round(log_rarity(np.array([4, 1, 1, 0, 0, 0, 0])), 4)  # n1 / n0 = 2 / 4 against 6 / 3
        -1.3863
    """
    none, one, some = (counts == 0).sum(), (counts == 1).sum(), counts[counts > 0]
    if not none or not len(some):
        return 0.0
    return float(min(0.0, np.log(max(one, 0.5) / none / some.mean())))
