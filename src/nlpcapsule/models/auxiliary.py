"""What training may ask of `label-query` beside the loss of its log-odds. It costs nothing at inference.

    explained      b'_ji = b_ji - g Σ_k p_k softmax(b)_ki     capsules that labels have explained are silenced
    consistency    ½ Σ_j (p_j - p'_j)(s_j - s'_j)             two readings of a document should agree (R-Drop)
    ranking        Σ_{t∈D⁺} log(1 + Σ_{j∈D⁻} e^{s_j - s_t})   a label should lie above all negatives at once

s are log-odds and p = sigmoid(s). The ranking loss is the decoupled softmax of Gupta et al. (2024): the
softmax cross-entropy of each of a document's labels, whose other labels do not compete with it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

SILENCE = 2.0  # g: a capsule that one sure label has for itself alone keeps e⁻² of its weight


@torch.no_grad()
def silencing(coupling: Tensor, logits: Tensor, valid: Tensor | None = None) -> Tensor:
    """Return g Σ_j p_j softmax(b)_ji (B, 1, m), by which explained capsules fall in every label's coupling.

    Args:
        coupling: The first coupling b (B, n, m).
        logits: What the network believes, (B, n) log-odds.
        valid: (B, n) False where outputs are filled up; those explain nothing.
    """
    present = torch.sigmoid(logits)  # (B, n)
    if valid is not None:
        present = present * valid
    shares = torch.softmax(coupling, dim=-1)  # (B, n, m)
    return SILENCE * (present.unsqueeze(1).to(shares.dtype) @ shares)


def divergence(logits: Tensor, others: Tensor, valid: Tensor | None = None) -> Tensor:
    """Return half the symmetric KL divergence of two readings: summed over labels, a batch's mean.

    Args:
        logits: (B, n).
        others: (B, n).
        valid: (B, n) False where outputs are filled up; those count for nothing.
    """
    terms = 0.5 * (torch.sigmoid(logits) - torch.sigmoid(others)) * (logits - others)  # (B, n)
    if valid is not None:
        terms = terms * valid
    return terms.sum(dim=1).mean()


def decoupled_softmax(logits: Tensor, targets: Tensor, valid: Tensor | None = None) -> Tensor:
    """Return Σ_{t∈D⁺} log(1 + Σ_{j∈D⁻} e^{s_j - s_t}), the mean over documents.

    Args:
        logits: (B, n).
        targets: (B, n), 1 for a document's own labels.
        valid: (B, n) False where outputs are filled up; those are no negatives.
    """
    negative = targets == 0 if valid is None else (targets == 0) & valid
    above = logits.masked_fill(~negative, -torch.inf).logsumexp(dim=1, keepdim=True)  # (B, 1)
    return (targets * F.softplus(above - logits)).sum(dim=1).mean()
