"""Losses of label networks, on log-odds; a capsule's length is a = sigmoid(logit).

Every loss is summed over a document's outputs and averaged over documents; λ weighs the negatives' terms.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from nlpcapsule.registry import LABEL_LOSSES

_UPPER, _LOWER = 0.9, 0.1  # margin loss: no loss above and below these lengths
_DISTANCE = 0.4  # spread loss: no loss of a pair of lengths that are further apart


@LABEL_LOSSES.register("bce")
def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return −y log a − (1−y) log(1−a), elementwise."""
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none")


@LABEL_LOSSES.register("margin")
def margin(logits: Tensor, targets: Tensor) -> Tensor:
    """Return y max(0, 0.9−a)² + (1−y) max(0, a−0.1)², elementwise (Sabour 2017; the caller applies λ)."""
    length = torch.sigmoid(logits)
    return targets * (_UPPER - length).clamp(min=0) ** 2 + (1 - targets) * (length - _LOWER).clamp(min=0) ** 2


def label_loss(
    kind: str, logits: Tensor, targets: Tensor, valid: Tensor | None = None, negative_weight: float = 1.0
) -> Tensor:
    """Return the loss of a batch: "spread", or one of `LABEL_LOSSES`.

    Logits, targets (1 for a document's labels) and `valid` (False at padding) are (B, n); λ is a number.
    """
    if kind == "spread":
        return spread(logits, targets, valid, negative_weight)
    terms = LABEL_LOSSES[kind](logits, targets)  # (B, n)
    weights = torch.where(targets > 0, 1.0, negative_weight)
    if valid is not None:
        weights = weights * valid
    return (terms * weights).sum(dim=1).mean()


def spread(
    logits: Tensor, targets: Tensor, valid: Tensor | None = None, negative_weight: float = 1.0
) -> Tensor:
    """Return Σ_{t∈D⁺, j∈D⁻} max(0, 0.4 − (a_t − a_j))² / |D⁺|, the mean over documents (Hinton 2018).

    Documents have few labels, so the positives are gathered into a narrow block (B, p), and only (B, p, n) is
    computed.
    """
    length = torch.sigmoid(logits)
    positive = targets > 0
    negative = ~positive if valid is None else ~positive & valid
    width = max(1, int(positive.sum(dim=1).max()))
    strongest, index = positive.to(torch.int8).topk(width, dim=1)  # (B, p)
    own = torch.gather(length, 1, index).unsqueeze(2)  # (B, p, 1)
    gap = (_DISTANCE - (own - length.unsqueeze(1))).clamp(min=0) ** 2  # (B, p, n)
    pairs = strongest.unsqueeze(2) * negative.unsqueeze(1)  # (B, p, n)
    per_document = (gap * pairs).sum(dim=(1, 2)) / positive.sum(dim=1).clamp(min=1)
    return negative_weight * per_document.mean()
