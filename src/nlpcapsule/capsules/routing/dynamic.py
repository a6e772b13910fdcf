"""Dynamic routing (Sabour et al. 2017): an input favours the outputs that its votes point to."""

import torch
from torch import Tensor

from nlpcapsule.capsules.routing.routed import Routed, full_precision, log_of_sum, routed_alike
from nlpcapsule.capsules.softmax import SoftmaxKind, couple, uniform_coupling
from nlpcapsule.capsules.squash import squash
from nlpcapsule.capsules.votes import Votes


@full_precision
def dynamic(
    votes: Votes,
    *,
    iterations: int = 3,
    softmax: SoftmaxKind = "standard",
    kappa: float = 1.0,
    valid: Tensor | None = None,
) -> Routed:
    """Iterate c = softmax_j b;  s_j = Σ_i c_ij û_{j|i};  v_j = squash(s_j);  b_ij += ⟨û_{j|i}, v_j⟩.

    The agreement score is the log of the objective Σ_ij c_ij ⟨v_j, û_{j|i}⟩ = Σ_j ⟨v_j, s_j⟩.
    """
    coupling = uniform_coupling(votes, softmax, valid)  # (B, m, n)
    sums = votes.total() * coupling[:, 0].unsqueeze(-1)  # (B, n, d)
    capsules = squash(sums, kappa)  # (B, n, d)
    agreement = [_agreement(capsules, sums)]
    logits: Tensor | None = None
    for _ in range(iterations - 1):
        dot = votes.inner(capsules)  # (B, m, n)
        logits = dot if logits is None else logits + dot  # (B, m, n)
        coupling = couple(logits, softmax, valid)  # (B, m, n)
        sums = votes.weighted_sum(coupling)  # (B, n, d)
        capsules = squash(sums, kappa)  # (B, n, d)
        agreement.append(_agreement(capsules, sums))
    return routed_alike(capsules, torch.stack(agreement, dim=1), coupling, valid)


def _agreement(capsules: Tensor, sums: Tensor) -> Tensor:
    return log_of_sum((capsules.detach() * sums.detach()).sum(dim=(1, 2)))  # (B,)
