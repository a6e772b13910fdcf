"""The routing of `label-query` without steps that depend on values, which can be exported."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.routing.label_query import LabelAgreement, LabelsRouted, agreement_function


def route_labels_masked(
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
    """Return the result of `route_labels`: all documents run to the limit, stopped ones keep their couplings.

    A GPU never waits for a value, either.
    """
    agree, gain = agreement_function(agreement, project, gate)
    logits, compared = first_coupling, capsules if compared is None else compared
    running = torch.ones_like(logits[:, 0, 0], dtype=torch.bool)  # (B,)
    used = running.long()
    last = torch.full_like(logits[:, 0, 0], torch.inf)  # (B,)
    kept = coupling = torch.softmax(logits, dim=-1)  # (B, n, m)
    columns = []
    for _ in range(1, iterations):
        agreed, scores = agree(compared, coupling, valid)  # (B, n, m), (B,)
        columns.append(torch.where(running, scores, torch.nan))
        logits = torch.addcmul(logits, agreed, gain.to(logits.device))
        coupling = torch.softmax(logits, dim=-1)
        if agreement == "adaptive-kde":
            running = running & ((scores - last).abs() >= eps)
            last = scores
            kept = torch.where(running[:, None, None], coupling, kept)
        else:
            kept = coupling
        used = used + running
    columns.append(torch.full_like(last, torch.nan))
    label_capsules = kept.to(capsules.dtype) @ capsules
    by_iteration = torch.stack(columns, dim=1)
    return LabelsRouted(label_capsules, used, by_iteration, kept.detach() if keep_coupling else None)
