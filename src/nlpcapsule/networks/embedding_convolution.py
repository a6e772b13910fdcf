"""The paper's convolution: filters span all token positions and slide along the embedding axis."""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.capsules.compression import ALIGNED, NEGLIGIBLE_START
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
        return F.pad(tokens, (0, self.length - tokens.shape[1]), value=self.padding_id)

    def forward(self, words: Tensor) -> list[Tensor]:
        """Map (B, l, v) to one feature map (B, filters, (v-k)/2+1) per width."""
        return self.convolve(self.pairs(words))

    def pairs(self, words: Tensor) -> Tensor:
        """Reorder words (B, l, v) to (B, 2 l, v/2): numbers at even places, then at odd ones, and zeros."""
        even = F.pad(words, (0, -words.shape[2] % (2 * ALIGNED))).unflatten(2, (-1, 2))  # (B, l, v/2, 2)
        return even.permute(0, 3, 1, 2).flatten(1, 2)

    def convolve(self, pairs: Tensor) -> list[Tensor]:
        """Map pairs (B, 2 l, v/2) to one feature map (B, filters, (v-k)/2+1) per width.

        With a stride of 2, a filter of width k is ⌈k/2⌉ filters of width 2, whose features are added at
        successive places. Those of all widths are one product; torch's convolutions would copy the words
        for every width, there and back, and take twice as long.
        """
        filters = [_in_pairs(layer.weight) for layer in self._layers]  # (k/2, F, 2 l) each
        joined = torch.cat([each.flatten(0, 1) for each in filters])  # (Σ F k/2, 2 l)
        products = torch.bmm(joined.expand(len(pairs), -1, -1), pairs)  # (B, Σ F k/2, v/2)
        parts = products.split([each.shape[0] * each.shape[1] for each in filters], dim=1)
        maps = []
        for layer, part, places in zip(self._layers, parts, self.map_sizes, strict=True):
            assert layer.bias is not None
            found = layer.bias[:, None]  # (F, 1)
            for first, step in enumerate(part.split(layer.out_channels, dim=1)):  # (B, F, v/2) each
                found = found + step[..., first : first + places]
            maps.append(found)  # (B, F, (v-k)/2+1)
        return maps

    @property
    def _layers(self) -> list[nn.Conv1d]:
        return [cast(nn.Conv1d, layer) for layer in self.convolutions]

    @torch.no_grad()
    def scale_start(self, words: Tensor, feature_scale: float = 1.0) -> None:
        """Scale each width's filters so that its features start at this root mean square on (B, l, v)."""
        for convolution, features in zip(self.convolutions, self(words), strict=True):
            found = features.square().mean().sqrt()
            if found > NEGLIGIBLE_START:  # documents without a known word do not determine the scale
                cast(nn.Conv1d, convolution).weight.mul_(feature_scale / found)


def _in_pairs(weight: Tensor) -> Tensor:
    """Return filters (F, l, k) as (k/2, F, 2 l), the last number alone if k is odd."""
    even = F.pad(weight, (0, weight.shape[2] % 2)).unflatten(2, (-1, 2))  # (F, l, k/2, 2)
    return even.permute(2, 0, 3, 1).flatten(2)
