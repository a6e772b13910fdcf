"""Votes of condensed capsules for labels in `label-query`, where they are more than the capsules themselves.

    slot       û_{j|i} = u_i + W_i u_i                        one matrix per slot, the same for all labels
    factored   û_{j|i} = u_i + Σ_r a_ir c_jr B_r u_i          R matrices that slots and labels mix
    gated      û_{j|i} = u_i + c_j ⊙ a_i ⊙ (Q u_i)            each label weighs d features of a vote

"gated" is "factored" with d matrices of rank one, B_r = e_r q_rᵀ. It costs less and gives each label d
numbers in place of R. The routing sees votes through sums and products, so (B, m, n, d) numbers are never
formed: "factored" forms (B, n, m, R + 1), "gated" nothing larger than (B, n, d) or (B, n, m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.votes import at_least_float32

FIRST_GATE_SPREAD = 0.1  # votes start close to the capsules


class LabelVotes(Protocol):
    """Votes û_{j|i} of m capsules for n labels, for each of B documents."""

    def weighted_sum(self, coupling: Tensor) -> Tensor:
        """Σ_i coupling_ji û_{j|i} (B, n, d) for couplings (B, n, m)."""
        ...

    def inner(self, label_capsules: Tensor) -> Tensor:
        """⟨û_{j|i}, v_j⟩ (B, n, m) for label capsules (B, n, d)."""
        ...

    def squared_norm(self) -> Tensor:
        """‖û_{j|i}‖² (B, n, m)."""
        ...

    def select(self, documents: Tensor) -> Self:
        """Return the votes of these documents only, given by their indices."""
        ...

    def as_compared(self, scale: Tensor | float = 1.0) -> Self:
        """Return the votes less each label's mean over i, times a scale, in float32 at least.

        Distances between votes and their weighted means only change by the scale; small numbers round less.
        """
        ...


@dataclass
class FactoredVotes:
    """û_{j|i} = Σ_r c_jr x_ir.

    Attributes:
        parts: x (B, m, R, d).
        gates: c (n, R), the same for all documents, or (B, n, R).
    """

    parts: Tensor
    gates: Tensor

    def weighted_sum(self, coupling: Tensor) -> Tensor:
        """Σ_i coupling_ji Σ_r c_jr x_ir (B, n, d), as one product over pairs (i, r)."""
        kind = self.parts.dtype
        gates = self.gates.to(kind).unsqueeze(-2)  # (…, n, 1, R)
        mixed = (coupling.to(kind).unsqueeze(-1) * gates).flatten(2)  # (B, n, mR)
        return mixed @ self.parts.flatten(1, 2)

    def inner(self, label_capsules: Tensor) -> Tensor:
        """Σ_r c_jr ⟨x_ir, v_j⟩ (B, n, m)."""
        products = label_capsules @ self.parts.flatten(1, 2).to(label_capsules.dtype).transpose(1, 2)
        products = products.unflatten(2, self.parts.shape[1:3])  # (B, n, m, R)
        return (products * self.gates.to(products.dtype).unsqueeze(-2)).sum(dim=-1)

    def squared_norm(self) -> Tensor:
        """Σ_rs c_jr c_js ⟨x_ir, x_is⟩ (B, n, m)."""
        gram = (self.parts @ self.parts.transpose(2, 3)).flatten(2)  # (B, m, RR)
        pairs = (self.gates.unsqueeze(-1) * self.gates.unsqueeze(-2)).flatten(-2)  # (…, n, RR)
        return pairs.to(gram.dtype) @ gram.transpose(1, 2)

    def select(self, documents: Tensor) -> FactoredVotes:
        """Return the votes of these documents only."""
        return FactoredVotes(self.parts[documents], _select_gates(self.gates, documents))

    def as_compared(self, scale: Tensor | float = 1.0) -> FactoredVotes:
        """Return the votes centred over i and scaled."""
        return FactoredVotes(_centred(self.parts) * scale, at_least_float32(self.gates))


@dataclass
class GatedVotes:
    """û_{j|i} = u_i + c_j ⊙ s_i.

    Attributes:
        capsules: u (B, m, d).
        features: s (B, m, d).
        gates: c (n, d), the same for all documents, or (B, n, d).
    """

    capsules: Tensor
    features: Tensor
    gates: Tensor

    def weighted_sum(self, coupling: Tensor) -> Tensor:
        """Σ_i coupling_ji u_i + c_j ⊙ Σ_i coupling_ji s_i (B, n, d)."""
        coupling = coupling.to(self.features.dtype)
        own, gated = coupling @ self.capsules.to(coupling.dtype), coupling @ self.features
        return torch.addcmul(own, self.gates.to(own.dtype), gated)

    def inner(self, label_capsules: Tensor) -> Tensor:
        """⟨u_i, v_j⟩ + ⟨s_i, c_j ⊙ v_j⟩ (B, n, m)."""
        own = label_capsules @ self.capsules.to(label_capsules.dtype).transpose(1, 2)
        gated = label_capsules * self.gates.to(label_capsules.dtype)  # (B, n, d)
        return own + gated @ self.features.to(label_capsules.dtype).transpose(1, 2)

    def squared_norm(self) -> Tensor:
        """‖u_i‖² + 2 ⟨c_j, s_i ⊙ u_i⟩ + ⟨c_j², s_i²⟩ (B, n, m)."""
        gates = torch.cat([self.gates, self.gates.square()], dim=-1).to(self.capsules.dtype)  # (…, n, 2d)
        features = torch.cat([2.0 * self.features * self.capsules, self.features.square()], dim=-1)
        own = self.capsules.square().sum(dim=-1).unsqueeze(1)  # (B, 1, m)
        return own + gates @ features.transpose(1, 2)

    def select(self, documents: Tensor) -> GatedVotes:
        """Return the votes of these documents only."""
        return GatedVotes(
            self.capsules[documents], self.features[documents], _select_gates(self.gates, documents)
        )

    def as_compared(self, scale: Tensor | float = 1.0) -> GatedVotes:
        """Return the votes centred over i and scaled."""
        capsules, features = _centred(self.capsules) * scale, _centred(self.features) * scale
        return GatedVotes(capsules, features, at_least_float32(self.gates))


class SlotTransform(nn.Module):
    """û_i = u_i + W_i u_i; W starts at zero.

    Args:
        condensed: m.
        size: d.
    """

    def __init__(self, condensed: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(condensed, size, size))  # W

    def forward(self, capsules: Tensor) -> Tensor:
        """Transform condensed capsules (B, m, d), each by its slot's matrix."""
        return capsules + (capsules.transpose(0, 1) @ self.weight.transpose(1, 2)).transpose(0, 1)


class FactoredTransform(nn.Module):
    """The R matrices of "factored" votes and how slots and labels mix them.

    Args:
        condensed: m.
        label_count: n.
        size: d.
        rank: R.
    """

    def __init__(self, condensed: int, label_count: int, size: int, rank: int) -> None:
        super().__init__()
        self.slot = nn.Parameter(1.0 + FIRST_GATE_SPREAD * torch.randn(condensed, rank))  # a
        self.label = nn.Parameter(FIRST_GATE_SPREAD * torch.randn(label_count, rank))  # c
        self.weight = nn.Parameter(torch.randn(rank, size, size) / math.sqrt(size))  # B

    def forward(self, capsules: Tensor, label: Tensor) -> FactoredVotes:
        """Return the votes of capsules (B, m, d) for labels whose rows of c are (n, R) or (B, n, R)."""
        rank, size, _ = self.weight.shape
        moved = capsules @ self.weight.flatten(0, 1).T.to(capsules.dtype)  # (B, m, Rd)
        moved = moved.unflatten(2, (rank, size)) * self.slot.unsqueeze(-1).to(moved.dtype)  # (B, m, R, d)
        parts = torch.cat([capsules.to(moved.dtype).unsqueeze(2), moved], dim=2)  # (B, m, 1 + R, d)
        return FactoredVotes(parts, torch.cat([torch.ones_like(label[..., :1]), label], dim=-1))


class GatedTransform(nn.Module):
    """What "gated" votes are made of: features of each capsule, and how slots and labels weigh them.

    Args:
        condensed: m.
        label_count: n.
        size: d.
    """

    def __init__(self, condensed: int, label_count: int, size: int) -> None:
        super().__init__()
        self.slot = nn.Parameter(1.0 + FIRST_GATE_SPREAD * torch.randn(condensed, size))  # a
        self.label = nn.Parameter(FIRST_GATE_SPREAD * torch.randn(label_count, size))  # c
        self.features = nn.Linear(size, size, bias=False)  # Q

    def forward(self, capsules: Tensor, label: Tensor) -> GatedVotes:
        """Return the votes of capsules (B, m, d) for labels whose rows of c are (n, d) or (B, n, d)."""
        features = self.features(capsules)  # (B, m, d)
        return GatedVotes(capsules, features * self.slot.to(features.dtype), label)


def _centred(values: Tensor) -> Tensor:
    """Subtract the mean over capsules from (B, m, …), in float32 at least."""
    values = at_least_float32(values)
    return values - values.mean(dim=1, keepdim=True)


def _select_gates(gates: Tensor, documents: Tensor) -> Tensor:
    return gates if gates.dim() == 2 else gates[documents]
