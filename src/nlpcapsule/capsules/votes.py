"""Votes û_{j|i}: the prediction of output capsule j by input capsule i.

Routings use votes only through the sums and products below. `PerClassVotes` computes these without the votes
themselves, whose (B, m, n, d) values would take gigabytes for thousands of outputs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor


class Votes(Protocol):
    """Protocol of the votes of m input capsules for n output capsules of size d, for B documents."""

    shape: tuple[int, int, int, int]  # B, m, n, d
    dtype: torch.dtype
    device: torch.device

    def total(self) -> Tensor:
        """Return Σ_i û_{j|i} (B, n, d), which is all that the uniform first iteration needs."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return Σ_i w_ij û_{j|i} (B, n, d) for weights (B, m, n)."""

    def inner(self, capsules: Tensor) -> Tensor:
        """Return ⟨û_{j|i}, v_j⟩ (B, m, n) for output capsules (B, n, d)."""

    def squared_norm(self, scale: Tensor | None = None) -> Tensor:
        """Return Σ_h s_jh û²_{jh|i} (B, m, n) for a scale (B, n, d); ‖û_{j|i}‖² without one."""

    def second_moment(self, weights: Tensor) -> Tensor:
        """Return Σ_i w_ij û²_{jh|i} (B, n, d) for weights (B, m, n)."""

    def select(self, documents: Tensor) -> Votes:
        """Return the votes of these documents only, given by their indices."""

    def double(self) -> Votes:
        """Return the votes in float64."""


class PerClassVotes:
    """Votes û_{j|i} = W_j u_i of capsules u (B, m, d), one matrix per output; (B, m, n, d) is never computed.

    W is (n, d, d), the same for all documents, or (B, n, d, d), a label set per document.
    Σ_i w_ij W_j u_i = W_j (Σ_i w_ij u_i), ⟨v_j, W_j u_i⟩ = ⟨W_jᵀ v_j, u_i⟩ and
    ‖W_j u_i‖² = u_iᵀ (W_jᵀ W_j) u_i, so that all is (B, m, n) or (B, n, d).
    """

    def __init__(self, capsules: Tensor, transforms: Tensor) -> None:
        self.capsules = at_least_float32(capsules)  # (B, m, d)
        self.transforms = at_least_float32(transforms)  # (n, d, d) or (B, n, d, d)
        # The indices of W_j's documents and outputs in einsum's notation; each einsum below is one bmm.
        self._each = "bn" if transforms.dim() == 4 else "n"
        documents, inputs, size = capsules.shape
        self.shape = (documents, inputs, transforms.shape[-3], size)
        self.dtype, self.device = self.capsules.dtype, self.capsules.device
        self._squared_norm: Tensor | None = None

    def total(self) -> Tensor:
        """Return Σ_i û_{j|i} = W_j (Σ_i u_i)  (B, n, d)."""
        return torch.einsum(f"{self._each}hk,bk->bnh", self.transforms, self.capsules.sum(dim=1))

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return Σ_i w_ij û_{j|i} = W_j (Σ_i w_ij u_i)  (B, n, d)."""
        pooled = weights.transpose(1, 2) @ self.capsules  # (B, n, d)
        return torch.einsum(f"{self._each}hk,bnk->bnh", self.transforms, pooled)

    def inner(self, capsules: Tensor) -> Tensor:
        """Return ⟨û_{j|i}, v_j⟩ = ⟨u_i, W_jᵀ v_j⟩  (B, m, n)."""
        turned = torch.einsum(f"{self._each}hk,bnh->bnk", self.transforms, capsules)  # (B, n, d)
        return self.capsules @ turned.transpose(1, 2)

    def squared_norm(self, scale: Tensor | None = None) -> Tensor:
        """Return Σ_h s_jh û²_{jh|i} = u_iᵀ (W_jᵀ diag(s_j) W_j) u_i  (B, m, n), from d(d+1)/2 terms."""
        if scale is not None:
            scaled = self.transforms * scale.unsqueeze(-1)  # (B, n, d, d)
            return self._quadratic_form(scaled.transpose(-1, -2) @ self.transforms)
        if self._squared_norm is None:
            # Rounding can make the form of a very short vote slightly negative.
            gram = self.transforms.transpose(-1, -2) @ self.transforms  # (n, d, d) or (B, n, d, d)
            self._squared_norm = self._quadratic_form(gram).clamp_min(0.0)
        return self._squared_norm

    def second_moment(self, weights: Tensor) -> Tensor:
        """Return Σ_i w_ij û²_{jh|i} = (W_j (Σ_i w_ij u_i u_iᵀ) W_jᵀ)_hh  (B, n, d)."""
        outer = torch.einsum("bmk,bml->bmkl", self.capsules, self.capsules).flatten(2)  # (B, m, d²)
        moment = (weights.transpose(1, 2) @ outer).unflatten(-1, self.transforms.shape[-2:])  # (B, n, d, d)
        return (self.transforms @ moment * self.transforms).sum(dim=-1)

    def select(self, documents: Tensor) -> PerClassVotes:
        """Return the votes of these documents only."""
        transforms = self.transforms[documents] if self.transforms.dim() == 4 else self.transforms
        return PerClassVotes(self.capsules[documents], transforms)

    def double(self) -> PerClassVotes:
        """Return the votes in float64."""
        return PerClassVotes(self.capsules.double(), self.transforms.double())

    def _quadratic_form(self, symmetric: Tensor) -> Tensor:
        """Return u_iᵀ S_j u_i (B, m, n) for symmetric S (n, d, d) or (B, n, d, d), from upper triangles."""
        size = self.shape[-1]
        row, column = torch.triu_indices(size, size, device=self.device)  # d(d+1)/2 each
        twice_off_diagonal = 2.0 - (row == column).to(self.dtype)
        products = self.capsules[..., row] * self.capsules[..., column]  # (B, m, d(d+1)/2)
        packed = symmetric[..., row, column] * twice_off_diagonal  # (n or B n, d(d+1)/2)
        return products @ packed.transpose(-1, -2)


class FormedVotes:
    """Votes that exist as a tensor û (B, m, n, d)."""

    def __init__(self, formed: Tensor) -> None:
        self.formed = formed  # in half precision under autocast
        documents, inputs, outputs, size = formed.shape
        self.shape = (documents, inputs, outputs, size)
        self.dtype, self.device = torch.promote_types(formed.dtype, torch.float32), formed.device
        self._squared_norm: Tensor | None = None

    @cached_property
    def votes(self) -> Tensor:
        """û (B, m, n, d), in float32 at least."""
        return at_least_float32(self.formed)

    def total(self) -> Tensor:
        """Return Σ_i û_{j|i}  (B, n, d)."""
        return self.votes.sum(dim=1)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return Σ_i w_ij û_{j|i}  (B, n, d)."""
        return torch.einsum("bmn,bmnh->bnh", weights, self.votes)

    def inner(self, capsules: Tensor) -> Tensor:
        """Return ⟨û_{j|i}, v_j⟩  (B, m, n)."""
        return torch.einsum("bmnh,bnh->bmn", self.votes, capsules)

    def squared_norm(self, scale: Tensor | None = None) -> Tensor:
        """Return Σ_h s_jh û²_{jh|i}  (B, m, n)."""
        if scale is not None:
            return torch.einsum("bmnh,bnh->bmn", self.votes.square(), scale)
        if self._squared_norm is None:
            self._squared_norm = self.votes.square().sum(dim=-1)
        return self._squared_norm

    def second_moment(self, weights: Tensor) -> Tensor:
        """Return Σ_i w_ij û²_{jh|i}  (B, n, d)."""
        return torch.einsum("bmn,bmnh->bnh", weights, self.votes.square())

    def select(self, documents: Tensor) -> FormedVotes:
        """Return the votes of these documents only."""
        return FormedVotes(self.votes[documents])

    def double(self) -> FormedVotes:
        """Return the votes in float64."""
        return FormedVotes(self.votes.double())


class PairwiseVotes(FormedVotes):
    """Votes û_{j|i} = W_ij u_i of capsules u (B, m, d), one matrix per pair of capsule and output.

    W is (n, m, d, d), the same for all documents, or (B, n, m, d, d), a label set per document.
    """

    def __init__(self, capsules: Tensor, transforms: Tensor) -> None:
        if transforms.dim() == 5:
            super().__init__(_votes_per_document(capsules, transforms))
            return
        outputs, _, size, _ = transforms.shape
        # One bmm over i; the sums above can read its layout (m, B, n, d) in place.
        by_input = torch.bmm(
            capsules.transpose(0, 1), transforms.permute(1, 3, 0, 2).flatten(2)
        )  # (m, B, n·d)
        super().__init__(by_input.unflatten(-1, (outputs, size)).transpose(0, 1))


def _votes_per_document(capsules: Tensor, transforms: Tensor) -> Tensor:
    """Return W_bji u_bi (B, m, n, d) for (B, m, d) and (B, n, m, d, d), as a bmm without copies."""
    documents, outputs, inputs, size, _ = transforms.shape
    repeated = capsules.unsqueeze(1).expand(-1, outputs, -1, -1).reshape(-1, size, 1)  # (B·n·m, d, 1)
    votes = torch.bmm(transforms.reshape(-1, size, size), repeated)  # (B·n·m, d, 1)
    return votes.view(documents, outputs, inputs, size).transpose(1, 2)


def at_least_float32(tensor: Tensor) -> Tensor:
    """Convert half precision, as under autocast, to float32, which distances need."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
