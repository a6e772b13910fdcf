"""Convolutions over words: products with filters once for each distinct word of a batch.

    (W * E x)_t = Σ_o W_o E[x_(t+o)] = Σ_o P_o[x_(t+o)],     P_o = E W_oᵀ   (U, filters)

A batch of 16,000 words may have 1,600 distinct ones; what is left to do at each position is to add rows of P.
Exact up to rounding, forward and backward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class DistinctWords:
    """The distinct words of a batch, and where they stand."""

    ids: Tensor  # (U,) the first is padding
    places: Tensor  # (B, l) into `ids`

    @classmethod
    def of(cls, tokens: Tensor, padding_id: int) -> Self:
        """Find the distinct words of token ids (B, l)."""
        ids, places = torch.unique(tokens, return_inverse=True)
        return cls(torch.cat([ids.new_tensor([padding_id]), ids]), places + 1)

    def convolve(self, words: Tensor, convolution: nn.Module) -> Tensor:
        """Return the convolution over time (B, l, filters) of the words' vectors (U, v), zero for padding.

        Sums are in float32 under autocast too, and so is the gradient of a word that is in many places. The
        result is of autocast's type.
        """
        weight, bias = (convolution.get_parameter(name) for name in ("weight", "bias"))
        filters, size, width = weight.shape
        left = (width - 1) // 2
        with torch.autocast("cpu", enabled=False):
            rows = weight.permute(1, 2, 0).reshape(size, width * filters)
            # The product with the word at the position itself is always added, and the bias with it.
            centred = nn.functional.pad(bias, (left * filters, (width - 1 - left) * filters))
            products = torch.addmm(centred, words, rows).view(-1, filters)  # (U · width, filters)
            padded = nn.functional.pad(self.places, (left, width - 1 - left))
            indices = padded.unfold(1, width, 1) * width + torch.arange(width)  # (B, l, width)
            sums = nn.functional.embedding_bag(indices.flatten(0, 1), products, mode="sum")
        if torch.is_autocast_enabled("cpu"):
            sums = sums.to(torch.get_autocast_dtype("cpu"))
        return sums.view(*self.places.shape, filters)
