"""Maxima and weighted means of a document's states, computed as ONNX Runtime computes them fastest."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nlpcapsule.networks.query_routing import CondensedCapsules

_POOLED = 16  # states whose maximum is computed at once
_LARGEST = 127  # of 7 bits: some CPUs add products in 16 bits, which more could overflow


def pooled_maximum(states: Tensor, mask: Tensor | None) -> Tensor:
    """Return the result of `largest_states`: ONNX Runtime pools a few states at a time 8 times as fast."""
    if mask is not None:
        states = states.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    pooled = states.unsqueeze(1)  # (B, 1, l, H)
    for _ in range(2):
        pooled = nn.functional.max_pool2d(pooled, (_POOLED, 1), ceil_mode=True)
    return pooled.amax(dim=(1, 2))  # (B, H)


class CapsulesIn8Bits(CondensedCapsules):
    """Condensed capsules of states that are not negative, pooled as integers.

    Args:
        capsules: The capsules in float32, whose parts are shared.
    """

    def __init__(self, capsules: CondensedCapsules) -> None:
        nn.Module.__init__(self)  # there is nothing to build
        self.encoder, self.to_capsule, self.norm = capsules.encoder, capsules.to_capsule, capsules.norm
        self.compress_query = capsules.compress_query

    def pool(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Return means (B, m, H) of states (B, l, H); without a mask, as there is no padding."""
        assert self.compress_query is not None
        return pool_in_8_bits(states @ self.compress_query.T, states)


def pool_in_8_bits(scores: Tensor, states: Tensor) -> Tensor:
    """Return means (B, m, H) of states (B, l, H), weighted by the softmax of scores (B, l, m) over l."""
    shares = (scores - pooled_maximum(scores, None).unsqueeze(1)).exp().transpose(1, 2)  # (B, m, l), 0 to 1
    largest = pooled_maximum(states, None).amax(dim=(0, 1)).clamp(min=torch.finfo(torch.float32).tiny)
    small_shares = _in_7_bits(shares, torch.ones(()), torch.uint8)
    small_states = _in_7_bits(states, largest, torch.int8)
    if torch.compiler.is_exporting():
        inputs, shape = (small_shares, small_states), (*shares.shape[:2], states.shape[2])
        total = torch.onnx.ops.symbolic("MatMulInteger", inputs, dtype=torch.int32, shape=shape, version=10)
    else:
        total = small_shares.float() @ small_states.float()
    return total.float() * (largest / _LARGEST) / small_shares.float().sum(dim=2, keepdim=True)  # (B, m, H)


def _in_7_bits(values: Tensor, largest: Tensor, kind: torch.dtype) -> Tensor:
    """Return values from 0 to `largest` () as integers from 0 to 127."""
    scale = largest / _LARGEST
    if not torch.compiler.is_exporting():
        return (values / scale).round().to(kind)
    inputs = (values, scale, torch.zeros((), dtype=kind))
    return torch.onnx.ops.symbolic("QuantizeLinear", inputs, dtype=kind, shape=values.shape, version=13)
