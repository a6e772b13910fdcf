"""Adaptive KDE routing (the paper's Algorithm 1): each document iterates until its agreement settles."""

from functools import partial

import torch
from torch import Tensor

from nlpcapsule.capsules.routing import routed
from nlpcapsule.capsules.routing.kde_mean_shift import Iteration, MeanShiftState, mean_shift
from nlpcapsule.capsules.routing.kernel import VoteKernel
from nlpcapsule.capsules.routing.routed import ActiveDocuments, Routed, log_of_sum, mask_padding
from nlpcapsule.capsules.softmax import SoftmaxKind, couple, uniform_coupling
from nlpcapsule.capsules.votes import Votes


@routed.full_precision
def adaptive_kde(
    votes: Votes,
    *,
    max_iterations: int = 10,
    eps: float = 0.05,
    softmax: SoftmaxKind = "leaky",
    kappa: float = 1.0,
    alpha: float = 1.0,
    valid: Tensor | None = None,
    literal: bool = False,
    stop_together: bool = False,
    clamp_kernel: bool = True,
) -> Routed:
    """Iterate `mean_shift`; a document stops, with its v, once |NAS - last NAS| < ε.

    NAS = log Σ_ij w_ij k_ij of the document alone, with Σ_i w_ij = 1; it is the agreement score. Stopped
    documents are no longer computed, and a document's result does not depend on the others.

    `literal` is Algorithm 1 exactly as printed (`as_printed`). The released code stops all documents when the
    log of the batch's mean settles (`stop_together`), and its kernel 1 - x is not clamped: it is negative
    beyond 1, and the log is taken of zero where the sum is below it.
    """
    kernel = VoteKernel.of(votes, kappa=None if literal else kappa, clamped=clamp_kernel)
    iterate = partial(as_printed if literal else mean_shift, softmax=softmax, kappa=kappa, alpha=alpha)
    documents = ActiveDocuments(votes.shape[0], votes.device)
    active_valid = valid
    last = torch.full(votes.shape[:1], torch.inf, dtype=votes.dtype, device=votes.device)  # (active,)
    state: MeanShiftState | None = None
    for iteration in range(1, max_iterations + 1):
        now = iterate(kernel, state, active_valid, is_last=iteration == max_iterations)
        scores = log_of_sum(now.agreement)  # (active,)
        documents.score(scores)
        watched = log_of_sum(now.agreement.mean()).expand_as(scores) if stop_together else scores
        if now.state is None:
            documents.finish(now.capsules, now.coupling.detach())
            break
        stopping = (watched - last).abs() < eps  # (active,)
        remaining = documents.stop(stopping, now.capsules, now.coupling.detach())
        if remaining.numel() == 0:
            break
        state, last = now.state, watched
        if remaining.numel() < stopping.numel():
            kernel, state = kernel.select(remaining), state.select(remaining)
            last = last[remaining]
            active_valid = None if active_valid is None else active_valid[remaining]
    capsules = mask_padding(documents.result(0), valid)  # (B, n, d)
    activations, coupling = routed.activation(capsules), documents.result(1)
    return Routed(capsules, activations, documents.iterations, documents.agreement, coupling)


def as_printed(
    kernel: VoteKernel,
    before: MeanShiftState | None,
    valid: Tensor | None,
    softmax: SoftmaxKind,
    kappa: float,
    alpha: float,
    is_last: bool,
) -> Iteration:
    """Run one iteration of Algorithm 1 exactly as printed: no squash, and the softmax is taken of c itself.

    c_ij = 1/n at first;  c = softmax_j c;  v_j = Σ_i c_ij 1[x_ij < 1] û_{j|i} / Σ_i 1[x_ij < 1];
    c += α k(x) with x_ij = ‖û_{j|i} - v_j‖²;  the objective is Σ_ij c_ij k_ij, of the c just updated.

    The kernel is that of the unsquashed votes, the previous iteration's logits are c, and κ is not used.
    """
    votes = kernel.votes
    if before is None:
        share: float | Tensor = 1.0 / votes.shape[2]
        if valid is not None:
            share = 1.0 / valid.sum(dim=1, dtype=votes.dtype).clamp_min(1.0)[:, None, None]  # (B, 1, 1)
        coupling = uniform_coupling(votes, softmax, valid, logit=share)  # (B, m, n)
        capsules = votes.total() * coupling[:, 0].unsqueeze(-1) / votes.shape[1]  # (B, n, d)
    else:
        coupling = couple(before.logits, softmax, valid)  # (B, m, n)
        if before.support is None:
            capsules = votes.weighted_sum(coupling) / votes.shape[1]  # (B, n, d)
        else:
            near = before.support.sum(dim=1).unsqueeze(-1)  # (B, n, 1)
            capsules = votes.weighted_sum(coupling * before.support) / near  # (B, n, d)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not is_last):
        value = kernel(capsules)  # (B, m, n)
        updated = torch.add(coupling, value, alpha=alpha)  # (B, m, n)
    with torch.no_grad():
        agreement = mask_padding((updated * value).sum(dim=1), valid).sum(dim=1)  # (B,)
    state = None if is_last else MeanShiftState(updated, kernel.support(value))
    return Iteration(capsules, coupling, agreement, state)
