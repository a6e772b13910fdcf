"""The routing of the label-query model: a softmax over the condensed capsules for each label.

Other routings divide an input capsule among the outputs; here the softmax runs over the inputs, so labels do
not compete. With a fixed number of iterations a label's capsule does not depend on which others are routed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.routing.routed import ActiveDocuments, log_of_sum
from nlpcapsule.capsules.votes import at_least_float32

LabelAgreement = Literal["dot", "kde", "adaptive-kde"]

# capsules (B, m, d), coupling (B, n, m), valid -> agreement (B, n, m), scores (B,)
AgreementFunction = Callable[..., tuple[Tensor, Tensor]]

# A kernel lies in [0, 1]: the logit of full agreement, times the learned gate.
KERNEL_GAIN = 10.0


@dataclass
class LabelsRouted:
    """The result of routing B documents from m condensed capsules to n labels.

    The agreement score is NaN after a document stopped, and in the last iteration, which it does not change.
    """

    label_capsules: Tensor  # v_j (B, n, d)
    iterations: Tensor  # (B,) int64, used by each document
    agreement: Tensor  # (B, T), each document's score by iteration; detached
    coupling: Tensor | None  # (B, n, m), the couplings that gave v_j, detached; None unless `keep_coupling`


def route_labels(
    capsules: Tensor,
    first_coupling: Tensor,
    *,
    agreement: LabelAgreement = "adaptive-kde",
    gate: float | Tensor = 0.1,
    iterations: int = 3,
    eps: float = 0.05,
    compared: Tensor | None = None,
    project: nn.Module | None = None,
    valid: Tensor | None = None,
    keep_coupling: bool = False,
) -> LabelsRouted:
    """Route condensed capsules u (B, m, d) to labels, from the logits ⟨q_j, K u_i⟩ + slot_ji (B, n, m).

    coupling = softmax_i logit;  v_j = Σ_i coupling_ji u_i;  logit_ji += gate · (agreement of u_i and v_j).

    The agreement of u_i and v_j is 10 k_ij with k_ij = max(0, 1 - ‖u_i - v_j‖² / d) for "kde" and
    "adaptive-kde", and ⟨project(v_j), u_i⟩ / √d for "dot", where `project` computes LN(R v). With
    "adaptive-kde" a document stops, with its v, once |NAS - last NAS| < ε, and is no longer computed.

    Changes of NAS depend on the scale of the capsules that the kernel compares: `compared` (B, m, d), as
    `VoteScale` centres and scales them. Label capsules are sums of the unscaled capsules.

    A document's agreement score is NAS = log of the mean over labels of Σ_i coupling_ji k_ij; for "dot", the
    mean over labels of ⟨project(v_j), v_j⟩ / √d, without a log, as it can be negative. Padding, where `valid`
    (B, n) is False, is not part of it.
    """
    agree, gain = agreement_function(agreement, project, gate)
    logits, active = first_coupling, capsules if compared is None else compared
    documents = ActiveDocuments(capsules.shape[0], capsules.device)
    last = torch.full(capsules.shape[:1], torch.inf, device=capsules.device)  # (active,)
    for iteration in range(1, iterations + 1):
        coupling = torch.softmax(logits, dim=-1)  # (B, n, m)
        if iteration == iterations:
            documents.score(torch.full_like(last, torch.nan))
            documents.finish(coupling)
            break
        agreed, scores = agree(active, coupling, valid)  # (B, n, m), (B,)
        documents.score(scores)
        logits = torch.addcmul(logits, agreed, gain.to(logits.device))  # (B, n, m)
        if agreement == "adaptive-kde":
            stopping = (scores - last).abs() < eps  # (active,)
            remaining = documents.stop(stopping, coupling)
            if remaining.numel() == 0:
                break
            last = scores
            if remaining.numel() < stopping.numel():
                active, logits, last = active[remaining], logits[remaining], last[remaining]
                valid = None if valid is None else valid[remaining]
    coupling = documents.result(0)
    kept = coupling.detach() if keep_coupling else None
    label_capsules = coupling.to(capsules.dtype) @ capsules
    return LabelsRouted(label_capsules, documents.iterations, documents.agreement, kept)


def agreement_function(
    agreement: LabelAgreement, project: nn.Module | None, gate: float | Tensor
) -> tuple[AgreementFunction, Tensor]:
    """Return the function that computes the agreement, and the weight () of its result in the logits."""
    if agreement != "dot":
        return _kernel, torch.as_tensor(gate) * KERNEL_GAIN
    assert project is not None  # computes LN(R v)
    return partial(_dot, project), torch.as_tensor(gate)


def _kernel(capsules: Tensor, coupling: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return k_ij = max(0, 1 - ‖u_i - v_j‖² / d) (B, n, m), and NAS (B,).

    1 - ‖u - v‖²/d = (1 - ‖u‖²/d) + 2⟨v, u⟩/d - ‖v‖²/d: a small difference of larger numbers, so autocast is
    off. Given the couplings, v itself is not needed: ‖v_j‖² = Σ_i coupling_ji ⟨v_j, u_i⟩.
    """
    with torch.autocast(capsules.device.type, enabled=False):
        inputs, coupling = at_least_float32(capsules), at_least_float32(coupling)
        size = inputs.shape[-1]
        at_zero = 1.0 - inputs.square().mean(dim=-1).unsqueeze(1)  # (B, 1, m)
        # The part that all capsules share is added last, so that the sums below are of small numbers.
        alike = at_zero.mean(dim=-1, keepdim=True)  # (B, 1, 1)
        own = at_zero - alike  # (B, 1, m)
        around_v = _around_label_capsules(inputs, coupling, own, 2.0 / size)  # own + 2⟨v, u⟩/d (B, n, m)
        squared = (coupling * around_v).sum(dim=-1, keepdim=True) - coupling @ own.transpose(1, 2)
        value = (around_v + (alike - 0.5 * squared)).relu_()  # (B, n, m)
        with torch.no_grad():
            agreed = (coupling * value).sum(dim=-1)  # (B, n)
            return value, log_of_sum(_mean_over_labels(agreed, valid))


def _around_label_capsules(inputs: Tensor, coupling: Tensor, own: Tensor, scale: float) -> Tensor:
    """Return ⟨v_j, u_i⟩ scale + own (B, n, m), v = coupling u, with products in the cheaper order."""
    transposed = inputs.transpose(1, 2)  # (B, d, m)
    if inputs.shape[1] <= 2 * inputs.shape[2]:
        return torch.baddbmm(own, coupling, inputs @ transposed, alpha=scale)
    return torch.baddbmm(own, coupling @ inputs, transposed, alpha=scale)


def _dot(
    project: nn.Module, capsules: Tensor, coupling: Tensor, valid: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return ⟨project(v_j), u_i⟩ / √d (B, n, m), and its mean (B,) over couplings and labels."""
    label_capsules = coupling.to(capsules.dtype) @ capsules  # (B, n, d)
    projected = project(label_capsules) / capsules.shape[-1] ** 0.5  # (B, n, d)
    with torch.no_grad():  # Σ_i coupling_ji ⟨project(v_j), u_i⟩ = ⟨project(v_j), v_j⟩
        agreed = (at_least_float32(projected) * at_least_float32(label_capsules)).sum(dim=-1)  # (B, n)
    return projected @ capsules.transpose(1, 2), _mean_over_labels(agreed, valid)


def _mean_over_labels(agreed: Tensor, valid: Tensor | None) -> Tensor:
    if valid is None:
        return agreed.mean(dim=-1)
    return (agreed * valid).sum(dim=-1) / valid.sum(dim=-1).clamp_min(1)
