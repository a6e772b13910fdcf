"""The Epanechnikov kernel on squared distances between votes and output capsules, and weighted sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nlpcapsule.capsules.votes import Votes

# Smaller sums of weights count as zero: dividing by them would overflow in the backward pass.
NEGLIGIBLE = 1e-12


@dataclass
class VoteKernel:
    """k(x_ij) = max(0, 1 - x_ij) with x_ij = ‖g(û_{j|i}) - v_j‖², from inner products alone.

    The squash g only scales a vote, g(û) = s û with s = ‖û‖ / (κ + ‖û‖²), so
    1 - x = (1 - ‖s û‖²) + 2 s ⟨û, v⟩ - ‖v‖². Terms that do not depend on v are computed once, by `of`.
    """

    votes: Votes  # û_{j|i}
    at_zero: Tensor  # 1 - ‖g(û)‖² (B, m, n), the kernel's value for v = 0
    twice_stretch: Tensor  # 2 s (B, m, n), or a scalar 2 where votes are not squashed
    clamped: bool = True  # False for the released code's 1 - x, whose support is unbounded

    @classmethod
    def of(cls, votes: Votes, kappa: float | None, clamped: bool = True) -> VoteKernel:
        """Return the kernel of these votes, squashed with this κ; None uses the votes unsquashed."""
        squared = votes.squared_norm()  # (B, m, n)
        if kappa is None:
            twice = torch.full((), 2.0, dtype=votes.dtype, device=votes.device)
            return cls(votes, 1.0 - squared, twice, clamped)
        # The slope of the root at 0 is infinite, that of the squash is not: avoid NaN for votes of length 0.
        length = squared.clamp_min(torch.finfo(squared.dtype).tiny).sqrt()  # (B, m, n)
        stretch = length / (kappa + squared)  # (B, m, n)
        return cls(votes, 1.0 - (stretch * length).square(), 2.0 * stretch, clamped)

    def __call__(self, capsules: Tensor) -> Tensor:
        """Return k(x_ij) (B, m, n) for output capsules v (B, n, d)."""
        dot = self.votes.inner(capsules)  # (B, m, n)
        squared = capsules.square().sum(dim=-1).unsqueeze(1)  # (B, 1, n)
        value = torch.addcmul(self.at_zero, self.twice_stretch, dot).add_(-squared)  # (B, m, n)
        return value.relu_() if self.clamped else value

    def support(self, value: Tensor) -> Tensor | None:
        """Return 1[x_ij < 1] (B, m, n), the kernel's derivative up to sign, for values k (B, m, n).

        It is all ones where no vote is inside, and None if the kernel is not clamped: 1 everywhere.
        """
        if not self.clamped:
            return None
        # Numbers, since multiplying by booleans is many times slower on a CPU.
        inside = value.detach().sign()  # (B, m, n), k > 0 inside and k = 0 outside
        none_inside = (inside.sum(dim=1, keepdim=True) == 0.0).to(inside.dtype)  # (B, 1, n)
        return inside.add_(none_inside)

    def select(self, documents: Tensor) -> VoteKernel:
        """Return the kernel of these documents only."""
        stretch = self.twice_stretch[documents] if self.twice_stretch.dim() == 3 else self.twice_stretch
        return VoteKernel(self.votes.select(documents), self.at_zero[documents], stretch, self.clamped)


def weighted_mean(votes: Votes, weights: Tensor) -> Tensor:
    """Return Σ_i w_ij û_{j|i} / Σ_i w_ij (B, n, d) for weights (B, m, n); zero without any weight."""
    # Dividing the sum instead of the weights avoids another (B, m, n) in memory.
    return votes.weighted_sum(weights) / mass_of(weights).unsqueeze(-1)


def mass_of(weights: Tensor) -> Tensor:
    """Return Σ_i w_ij (B, n), with a floor that makes it safe to divide by."""
    return weights.sum(dim=1).clamp_min(NEGLIGIBLE)


@torch.no_grad()
def kernel_agreement(weights: Tensor, value: Tensor) -> Tensor:
    """Return Σ_ij w_ij k_ij (B,) with weights (B, m, n), 0 for padding, scaled to Σ_i w_ij = 1."""
    return ((weights * value).sum(dim=1) / mass_of(weights)).sum(dim=1)
