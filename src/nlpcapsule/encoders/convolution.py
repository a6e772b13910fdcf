"""Word vectors → token states that know their neighbours: convolutions over time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ConvolutionEncoder(nn.Module):
    """Parallel convolutions of several widths over time, ReLU, side by side.

    A document's states do not depend on how far its row is filled up: padding is the zero vector, as is
    what lies beyond the row's end, and states at padding are zeroed.

    Args:
        size: v, numbers per word vector.
        windows: Widths, in tokens.
        filters: Filters per width.
        dropout: On word vectors and on states.
    """

    def __init__(self, size: int, windows: Sequence[int], filters: int, dropout: float) -> None:
        super().__init__()
        self.state_size = filters * len(windows)
        self.dropout = nn.Dropout(dropout)
        self.windows = tuple(windows)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, filters, width) for width in windows)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """(B, l, v) and (B, l) → (B, l, H)."""
        words = self.dropout(words).transpose(1, 2)  # (B, v, l)
        states = []
        for width, convolution in zip(self.windows, self.convolutions, strict=True):
            left = (width - 1) // 2
            states.append(convolution(nn.functional.pad(words, (left, width - 1 - left))))  # (B, filters, l)
        hidden = torch.relu(torch.cat(states, dim=1)).transpose(1, 2)  # (B, l, H)
        return self.dropout(hidden * mask.unsqueeze(-1))
