"""The output of every label network, and the steps to it that several share."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

FIRST_BIAS = -4.0  # initial log-odds: most labels are absent from most documents
# Far below the shortest capsule: `official` starts with lengths near 1e-9, and a larger bound would remove
# their gradient.
_SHORTEST = 1e-30


@dataclass(frozen=True)
class Explanation:
    """Attention and couplings behind the scores of a batch. All tensors are detached.

    A label's row of couplings sums to 1, or is 0 for a padding label or one that no capsule agrees with. Rows
    of attention sum to 1, and are 0 at padding. A transformer that reads windows has a state for each window
    of a token, and none for special tokens.
    """

    coupling: Tensor  # (B, n, m) weight of each capsule in each label's capsule
    attention: Tensor | None = None  # (B, m, l) of token states in capsules; None if these are not pooled


@dataclass
class Scored:
    """Scores of a batch; iterations and agreement are None where nothing is routed."""

    logits: Tensor  # (B, n) float32 log-odds: a label's probability is sigmoid(logit)
    iterations: Tensor | None = None  # (B,) that the routing of each document took
    agreement: Tensor | None = None  # (B, T) negative agreement score, NaN once a document stopped
    by_name: Tensor | None = None  # (B, n) log-odds as if no label had examples, if labels have names
    explanation: Explanation | None = None  # if asked for


def log_odds(activations: Tensor) -> Tensor:
    """Return the logit of capsules' lengths, so that every network returns logits."""
    inside = activations.float().clamp(_SHORTEST, 1 - torch.finfo(torch.float32).eps)
    return torch.log(inside) - torch.log1p(-inside)


def output_layer(size: int, label_count: int) -> nn.Linear:
    """Return a linear layer from document vectors to the labels' log-odds."""
    layer = nn.Linear(size, label_count)
    nn.init.constant_(layer.bias, FIRST_BIAS)
    return layer
