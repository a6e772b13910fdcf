"""Fast KDE routing by mean shift (Zhang et al. 2018, FRMS): every document gets T iterations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nlpcapsule.capsules.routing.kernel import VoteKernel, kernel_agreement, weighted_mean
from nlpcapsule.capsules.routing.routed import Routed, full_precision, log_of_sum, routed_alike
from nlpcapsule.capsules.softmax import SoftmaxKind, couple, uniform_coupling
from nlpcapsule.capsules.squash import squash
from nlpcapsule.capsules.votes import Votes


@full_precision
def kde_mean_shift(
    votes: Votes,
    *,
    iterations: int = 3,
    softmax: SoftmaxKind = "leaky",
    kappa: float = 1.0,
    alpha: float = 1.0,
    valid: Tensor | None = None,
) -> Routed:
    """Maximise the paper's Σ_ij c_ij k(d(v_j, û_{j|i})) in T iterations of `mean_shift`.

    The agreement score is NAS = log Σ_ij w_ij k_ij, with Σ_i w_ij = 1.
    """
    kernel = VoteKernel.of(votes, kappa)
    agreement: list[Tensor] = []
    state: MeanShiftState | None = None
    for iteration in range(1, iterations + 1):
        now = mean_shift(kernel, state, valid, softmax, kappa, alpha, is_last=iteration == iterations)
        state = now.state
        agreement.append(now.agreement)
    return routed_alike(now.capsules, log_of_sum(torch.stack(agreement, dim=1)), now.coupling, valid)


@dataclass
class MeanShiftState:
    """State that an iteration passes to the next one."""

    logits: Tensor  # b (B, m, n), the input of the next softmax
    support: Tensor | None  # 1[x_ij < 1] (B, m, n) around this iteration's v; None if it is 1 everywhere

    def select(self, documents: Tensor) -> MeanShiftState:
        """Return the state of these documents only."""
        support = None if self.support is None else self.support[documents]
        return MeanShiftState(self.logits[documents], support)


@dataclass
class Iteration:
    """The result of one iteration."""

    capsules: Tensor  # v (B, n, d)
    coupling: Tensor  # c (B, m, n), the couplings that v was computed from
    agreement: Tensor  # the objective's value Σ_ij w_ij k_ij (B,), before the log; detached
    state: MeanShiftState | None  # for the next iteration; None in the last one


def mean_shift(
    kernel: VoteKernel,
    before: MeanShiftState | None,
    valid: Tensor | None,
    softmax: SoftmaxKind,
    kappa: float,
    alpha: float,
    is_last: bool,
) -> Iteration:
    """Run one iteration of mean shift on the NAS objective.

    c = softmax_j b;  w_ij = c_ij 1[x_ij < 1];  v_j = squash(Σ_i w_ij û_{j|i} / Σ_i w_ij);  b += α k(x),
    with x_ij = ‖squash(û_{j|i}) - v_j‖² and k(x) = max(0, 1 - x). The indicator is the kernel's derivative in
    the previous iteration; the first iteration, with b = 0 and nothing before it, has none. In the last one k
    is only used as a score, without a gradient.
    """
    votes = kernel.votes
    if before is None:
        coupling = weights = uniform_coupling(votes, softmax, valid)  # (B, m, n)
        capsules = squash(votes.total() / votes.shape[1], kappa)  # (B, n, d)
    else:
        coupling = couple(before.logits, softmax, valid)  # (B, m, n)
        weights = coupling if before.support is None else coupling * before.support  # (B, m, n)
        capsules = squash(weighted_mean(votes, weights), kappa)  # (B, n, d)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not is_last):
        value = kernel(capsules)  # (B, m, n)
    agreement = kernel_agreement(weights, value)  # (B,)
    if is_last:
        return Iteration(capsules, coupling, agreement, None)
    step = value if alpha == 1.0 else alpha * value  # (B, m, n)
    logits = step if before is None else before.logits + step  # (B, m, n)
    return Iteration(capsules, coupling, agreement, MeanShiftState(logits, kernel.support(value)))
