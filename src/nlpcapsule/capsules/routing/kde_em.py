"""Fast KDE routing by expectation maximisation (Zhang et al. 2018, FREM)."""

import torch
from torch import Tensor

from nlpcapsule.capsules.routing.kernel import NEGLIGIBLE, VoteKernel, kernel_agreement, weighted_mean
from nlpcapsule.capsules.routing.routed import Routed, full_precision, log_of_sum, routed_alike
from nlpcapsule.capsules.softmax import SoftmaxKind, uniform_coupling
from nlpcapsule.capsules.squash import squash
from nlpcapsule.capsules.votes import Votes


@full_precision
def kde_em(
    votes: Votes,
    *,
    iterations: int = 3,
    softmax: SoftmaxKind = "standard",
    kappa: float = 1.0,
    valid: Tensor | None = None,
) -> Routed:
    """Fit a mixture of n kernels: the share r_ij of output j in input i follows from weight and distance.

    M-step: π_j = Σ_i r_ij / m;  v_j = squash(Σ_i r_ij û_{j|i} / Σ_i r_ij).
    E-step: r_ij = π_j k_ij / Σ_j π_j k_ij with k_ij = max(0, 1 - ‖squash(û_{j|i}) - v_j‖²).

    An input outside all kernels has no share: its r_ij are all 0. The agreement score is
    log Σ_ij r_ij k_ij, with Σ_i r_ij = 1. If leaky, 1 is added to the denominator of r_ij.
    """
    kernel = VoteKernel.of(votes, kappa)
    shares = uniform_coupling(votes, softmax, valid)  # (B, m, n), r
    capsules = squash(votes.total() / votes.shape[1], kappa)  # (B, n, d)
    agreement = []
    for _ in range(iterations - 1):
        value = kernel(capsules)  # (B, m, n)
        agreement.append(kernel_agreement(shares, value))
        weight = shares.mean(dim=1, keepdim=True)  # (B, 1, n), π; zero for padding
        density = weight * value  # (B, m, n)
        total = density.sum(dim=-1, keepdim=True)  # (B, m, 1)
        shares = density / (1.0 + total if softmax == "leaky" else total.clamp_min(NEGLIGIBLE))
        capsules = squash(weighted_mean(votes, shares), kappa)  # (B, n, d)
    with torch.no_grad():  # the last value changes nothing and is only scored
        agreement.append(kernel_agreement(shares, kernel(capsules)))
    return routed_alike(capsules, log_of_sum(torch.stack(agreement, dim=1)), shares, valid)
