"""Couplings c_ij from logits b_ij: how an input capsule i divides itself among the outputs j."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from nlpcapsule.errors import ConfigError, did_you_mean

SoftmaxKind = Literal["standard", "leaky"]


def couple(logits: Tensor, kind: SoftmaxKind, valid: Tensor | None = None) -> Tensor:
    """Softmax over the outputs: exp(b_ij) / Σ_j exp(b_ij), or with 1 + Σ_j exp(b_ij) below if leaky.

    The leaky one (Zhao 2018) has one more output, with a logit of zero, that takes the strength of capsules
    which agree with nobody.

    Args:
        logits: b (B, m, n).
        kind: "standard" or "leaky".
        valid: (B, n), False where an output is only padding and takes no part.

    Returns:
        c (B, m, n), zero for padding; Σ_j c_ij is 1 if standard, less than 1 if leaky.
    """
    _check(kind)
    if valid is not None:
        # The lowest finite number and not -inf: a document whose outputs are all padding gets no NaN.
        logits = logits.masked_fill(~valid.unsqueeze(-2), torch.finfo(logits.dtype).min)
    if kind == "standard":
        return torch.softmax(logits, dim=-1)
    return torch.softmax(F.pad(logits, (0, 1)), dim=-1)[..., :-1]


def uniform_coupling(
    valid: Tensor, inputs: int, kind: SoftmaxKind, dtype: torch.dtype, logit: float | Tensor = 0.0
) -> Tensor:
    """What `couple` gives where a capsule's logits are all equal, as in every first iteration, without it.

    Args:
        valid: (B, n), False where an output is only padding.
        inputs: m, the number of input capsules.
        kind: "standard" or "leaky".
        dtype: The couplings' type.
        logit: The logit that all outputs of a document share, a number or (B, 1): a leak compares it with 0.

    Returns:
        c (B, m, n) with the memory of (B, n): 1/n for n valid outputs; if leaky, 1/(n + exp(-logit)).
    """
    _check(kind)
    shares = valid.sum(dim=-1, keepdim=True).to(dtype).clamp_min(1.0)  # (B, 1)
    if kind == "leaky":
        shares = shares + torch.exp(-torch.as_tensor(logit, dtype=dtype, device=valid.device))
    return (valid / shares).unsqueeze(1).expand(-1, inputs, -1)


def _check(kind: str) -> None:
    if kind not in get_args(SoftmaxKind):
        raise ConfigError(f"unknown softmax {kind!r}; {did_you_mean(kind, get_args(SoftmaxKind))}")
