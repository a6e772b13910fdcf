"""EM routing (Hinton et al. 2018): each output capsule is a Gaussian over the votes it gets."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from nlpcapsule.capsules.routing.kernel import NEGLIGIBLE, mass_of, weighted_mean
from nlpcapsule.capsules.routing.routed import Routed, below_one, full_precision, mask_padding, routed_alike
from nlpcapsule.capsules.softmax import SoftmaxKind, couple, uniform_coupling
from nlpcapsule.capsules.votes import Votes


@full_precision
def em(
    votes: Votes,
    *,
    iterations: int = 3,
    softmax: SoftmaxKind = "standard",
    kappa: float = 1.0,
    beta_u: float | Tensor = 0.0,
    beta_a: float | Tensor = 0.0,
    inverse_temperature: float | Tensor = 0.01,
    variance_floor: float = 1e-3,
    valid: Tensor | None = None,
) -> Routed:
    """Alternate Gaussians from shares (M-step) and shares R_ij from Gaussians (E-step).

    M-step: μ_jh and σ²_jh, the R-weighted mean and variance of û_{jh|i};
    cost_jh = (β_u + log σ_jh) Σ_i R_ij;  a_j = sigmoid(λ_t (β_a - Σ_h cost_jh)).
    E-step: R_ij = a_j N(û_{j|i}; μ_j, σ²_j) / Σ_j a_j N(û_{j|i}; μ_j, σ²_j).

    The inverse temperature rises with the iterations: λ_t = λ `inverse_temperature_factor(t)`. The output
    capsule is v_j = μ_j, without a squash. The agreement score is the mean log density of a vote,
    Σ_ij R_ij log N_ij / Σ_ij R_ij.

    β_u is the cost of describing a vote, and β_a the cost up to which an output is active; they and λ are
    numbers or broadcast to (B, n). A leaky softmax adds an output of density 1 that is not returned. σ² has a
    floor, below which rounding dominates. κ is not used.
    """
    shares = uniform_coupling(votes, softmax, valid)  # (B, m, n), R
    agreement = []
    for iteration in range(1, iterations + 1):
        mean, variance, mass = _gaussians(votes, shares, variance_floor)  # (B, n, d), (B, n, d), (B, n)
        cost = (votes.shape[-1] * beta_u + 0.5 * variance.log().sum(dim=-1)) * mass  # (B, n)
        logit = inverse_temperature * inverse_temperature_factor(iteration) * (beta_a - cost)  # (B, n), a's
        last = iteration == iterations
        with torch.set_grad_enabled(torch.is_grad_enabled() and not last):  # the last one is only scored
            log_density = _log_density(votes, mean, variance)  # (B, m, n)
        agreement.append(_mean_log_density(shares, log_density))
        if not last:
            shares = couple(F.logsigmoid(logit).unsqueeze(1) + log_density, softmax, valid)  # (B, m, n)
    routed = routed_alike(mean, torch.stack(agreement, dim=1), shares, valid)
    routed.activations = mask_padding(below_one(torch.sigmoid(logit)), valid)
    return routed


def inverse_temperature_factor(iteration: int) -> float:
    """Return λ_t / λ = 1 - 0.95^t, the growth of the inverse temperature; iterations t count from 1."""
    return 1.0 - 0.95**iteration


def _gaussians(votes: Votes, shares: Tensor, variance_floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Run the M-step: mean μ (B, n, d), variance σ² (B, n, d) and mass Σ_i R_ij (B, n) of each output."""
    mass = mass_of(shares)  # (B, n)
    mean = weighted_mean(votes, shares)  # (B, n, d)
    second = votes.second_moment(shares) / mass.unsqueeze(-1)  # (B, n, d)
    return mean, (second - mean.square()).clamp_min(variance_floor), mass


def _log_density(votes: Votes, mean: Tensor, variance: Tensor) -> Tensor:
    """Return log N(û_{j|i}; μ_j, σ²_j) (B, m, n), with squared distances from inner products."""
    precision = 1.0 / variance  # (B, n, d)
    constant = (mean.square() * precision + (2.0 * math.pi * variance).log()).sum(dim=-1)  # (B, n)
    distance = votes.squared_norm(precision) - 2.0 * votes.inner(mean * precision)  # (B, m, n)
    return -0.5 * (distance + constant.unsqueeze(1))


@torch.no_grad()
def _mean_log_density(shares: Tensor, log_density: Tensor) -> Tensor:
    mass = shares.sum(dim=(1, 2)).clamp_min(NEGLIGIBLE)  # (B,)
    return (shares * log_density).sum(dim=(1, 2)) / mass
