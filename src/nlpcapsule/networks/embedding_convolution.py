"""The paper's convolution: filters span all token positions and slide along the embedding axis."""

import math
from typing import cast

import torch
from torch import Tensor, nn

from nlpcapsule.capsules.compression import NEGLIGIBLE_START
from nlpcapsule.config.settings import Widths
from nlpcapsule.errors import ConfigError
from nlpcapsule.registry import NetworkInputs


class EmbeddingConvolution(nn.Module):
    """Filters W^a ∈ R^{l×k}, stride 2: one feature per step along the embedding, of size v.

    Rows are padded or truncated to l positions, because filters span all of them. With a shared start a
    filter has the same initial weights at all l positions, and then learns each position separately.
    """

    def __init__(
        self, inputs: NetworkInputs, size: int, windows: Widths, filters: int, shared_start: bool = False
    ) -> None:
        super().__init__()
        if max(windows) > size:
            problem = f"a filter of width {max(windows)} does not fit on word vectors of {size} numbers"
            raise ConfigError(f"windows={list(windows)}: {problem}")
        self.length, self.padding_id = inputs.length, inputs.padding_id
        length = inputs.length
        layers = [nn.Conv1d(length, filters, width, stride=2) for width in windows]
        self.convolutions = nn.ModuleList(layers)
        self.map_sizes = [(size - width) // 2 + 1 for width in windows]
        if shared_start:
            for layer, width in zip(layers, windows, strict=True):
                alike = torch.randn(filters, 1, width) / math.sqrt(width * length)  # (F, 1, k)
                with torch.no_grad():
                    layer.weight.copy_(alike.expand_as(layer.weight))
                assert layer.bias is not None
                nn.init.zeros_(layer.bias)

    def fit(self, tokens: Tensor) -> Tensor:
        """Pad or truncate rows of tokens to l positions."""
        tokens = tokens[:, : self.length]
        return nn.functional.pad(tokens, (0, self.length - tokens.shape[1]), value=self.padding_id)

    def forward(self, words: Tensor) -> list[Tensor]:
        """Map (B, l, v) to one feature map (B, filters, (v-k)/2+1) per width."""
        return [convolution(words) for convolution in self.convolutions]

    @torch.no_grad()
    def scale_start(self, words: Tensor, feature_scale: float = 1.0) -> None:
        """Scale each width's filters so that its features start at this root mean square on (B, l, v)."""
        for convolution, features in zip(self.convolutions, self(words), strict=True):
            found = features.square().mean().sqrt()
            if found > NEGLIGIBLE_START:  # documents without a known word do not determine the scale
                cast(nn.Conv1d, convolution).weight.mul_(feature_scale / found)
