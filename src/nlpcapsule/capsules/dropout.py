"""Dropout that takes a small part of a training step on a CPU.

Torch draws a random number per value there, one after the other. Here one number decides about eight values,
a byte for each, so that the rate is rounded to a multiple of 1/256.
"""

from typing import Any

import torch
from torch import Tensor, nn

FEWEST_VALUES = 2**18  # torch's dropout of fewer takes no noticeable time
_BYTES = 8  # of a random number


def is_worthwhile(values: Tensor) -> bool:
    """Return whether bytes should decide about these values."""
    return values.device.type == "cpu" and values.numel() >= FEWEST_VALUES


def draw_kept(shape: torch.Size, rate: float, dtype: torch.dtype) -> tuple[Tensor, float]:
    """Return 0 where a value is dropped and 1 elsewhere, and the factor that keeps the expectation.

    Numbers of the values' own type, which also hold all bytes: products with booleans are not vectorised.

    Example:
        >>> kept, factor = draw_kept(torch.Size([2, 3]), 0.25, torch.float32)
        >>> kept.shape, round(factor, 4)
        (torch.Size([2, 3]), 1.3333)
    """
    count = shape.numel()
    numbers = torch.empty(-(-count // _BYTES), dtype=torch.int64)
    numbers.random_(torch.iinfo(torch.int64).min, None)  # all 64 bits are random
    dropped = round(256 * rate)
    kept = numbers.view(torch.uint8)[:count].to(dtype).sub_(dropped - 1).clamp_(0, 1)
    return kept.reshape(shape), 256 / (256 - dropped)


class Dropout(nn.Dropout):
    """`nn.Dropout`, faster for many values on a CPU."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop values in training."""
        if not (self.training and self.p and is_worthwhile(input)):
            return super().forward(input)
        kept, factor = draw_kept(input.shape, self.p, input.dtype)
        return input * kept.mul_(factor)


class _RectifiedAndDropped(torch.autograd.Function):
    """ReLU and dropout in one; the gradient needs nothing but the result."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, kept: Tensor, factor: float) -> Tensor:
        """Return max(0, x) · factor where kept, and 0 elsewhere."""
        result = values.clamp_min(0).mul_(kept).mul_(factor)
        ctx.save_for_backward(result)
        ctx.factor = factor
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Pass the gradient on where the result is positive."""
        (result,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradient, result, 0).mul_(ctx.factor), None, None


def rectify_and_drop(values: Tensor, mask: Tensor, rate: float) -> Tensor:
    """Return ReLU and dropout of values, zero where a mask that broadcasts to them is False."""
    kept, factor = draw_kept(values.shape, rate, values.dtype)
    return _RectifiedAndDropped.apply(values, kept.mul_(mask.to(values.dtype)), factor)
