"""Couplings c_ij from logits b_ij: how an input capsule i is distributed over the outputs j."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from nlpcapsule.capsules.votes import Votes

SoftmaxKind = Literal["standard", "leaky"]


def couple(logits: Tensor, kind: SoftmaxKind, valid: Tensor | None = None) -> Tensor:
    """Return the softmax over the outputs: exp(b_ij) / Σ_j exp(b_ij), or over 1 + Σ_j exp(b_ij) if leaky.

    The leaky softmax (Zhao 2018) has an extra output with a logit of zero, which absorbs capsules that agree
    with no output: Σ_j c_ij is less than 1. b and c are (B, m, n); c is zero for padding.
    """
    if valid is not None:
        # The lowest finite number: -inf would give NaN for a document with nothing but padding; and a sum,
        # since filling by a mask is many times slower on a CPU.
        padding = (~valid).to(logits.dtype) * torch.finfo(logits.dtype).min  # (B, n)
        logits = logits + padding.unsqueeze(-2)
    if kind == "standard":
        return torch.softmax(logits, dim=-1)
    return torch.softmax(F.pad(logits, (0, 1)), dim=-1)[..., :-1]


def uniform_coupling(
    votes: Votes, kind: SoftmaxKind, valid: Tensor | None = None, logit: float | Tensor = 0.0
) -> Tensor:
    """Return `couple` of equal logits, as in every first iteration, without a softmax of (B, m, n).

    c (B, m, n) is a view of (B, 1, n): 1/n for n valid outputs, or 1/(n + exp(-logit)) if leaky. The logit is
    a number or one per document (B, 1, 1).
    """
    documents, inputs, outputs, _ = votes.shape
    logits = torch.zeros(documents, 1, outputs, dtype=votes.dtype, device=votes.device) + logit
    return couple(logits, kind, valid).expand(-1, inputs, -1)
