"""What every label network returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Far below the shortest capsule: `official` starts with lengths near 1e-9, and a bound above them would leave
# it without a gradient.
_LEAST = 1e-30


@dataclass
class Scored:
    """A network's answer for a batch.

    Attributes:
        logits: (B, n) float32 log-odds: a label's probability is sigmoid(logit).
        iterations: (B,) routing iterations each document took; None where nothing is routed.
        agreement: (B, T) negative agreement score by iteration, NaN once a document stopped; None likewise.
        by_name: (B, n) log-odds as if no label had examples; None where labels have no names.
    """

    logits: Tensor
    iterations: Tensor | None = None
    agreement: Tensor | None = None
    by_name: Tensor | None = None


def log_odds(activations: Tensor) -> Tensor:
    """The logit of a capsule's length, so that networks ending in lengths and in logits meet in one place."""
    inside = activations.float().clamp(_LEAST, 1 - torch.finfo(torch.float32).eps)
    return torch.log(inside) - torch.log1p(-inside)
