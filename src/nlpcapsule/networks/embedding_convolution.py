"""The paper's convolution: filters span all token positions and slide along the embedding axis."""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
        return F.pad(tokens, (0, self.length - tokens.shape[1]), value=self.padding_id)

    def lookup(self, tokens: Tensor, embedding: nn.Module) -> Tensor:
        """Return the word vectors (B, l, v) of rows; on a GPU, in memory, (l, B, v): see `_by_number`."""
        tokens = self.fit(tokens)
        words: Tensor = embedding(tokens.T)[0].transpose(0, 1) if tokens.is_cuda else embedding(tokens)[0]
        return words

    def forward(self, words: Tensor) -> list[Tensor]:
        """Map (B, l, v) to one feature map (B, filters, (v-k)/2+1) per width.

        All widths are one product. Torch's convolutions would copy the words for each, there and back, which
        takes most of their time. On a GPU no words are copied at all; a CPU multiplies half as often.
        """
        layers = [cast(nn.Conv1d, layer) for layer in self.convolutions]
        weights = [layer.weight for layer in layers]  # (F, l, k) each
        products, stride = _by_number(words, weights) if words.is_cuda else _by_pair(words, weights)
        maps = []
        for layer, part, places in zip(layers, products, self.map_sizes, strict=True):
            assert layer.bias is not None
            found = layer.bias[:, None, None]  # (F, 1, 1)
            for first, product in enumerate(part.split(layer.out_channels)):  # (F, B, …) each
                found = found + product[..., first : first + stride * (places - 1) + 1 : stride]
            maps.append(found.transpose(0, 1))
        return maps

    @torch.no_grad()
    def scale_start(self, words: Tensor, feature_scale: float = 1.0) -> None:
        """Scale each width's filters so that its features start at this root mean square on (B, l, v)."""
        for convolution, features in zip(self.convolutions, self(words), strict=True):
            found = features.square().mean().sqrt()
            if found > NEGLIGIBLE_START:  # documents without a known word do not determine the scale
                cast(nn.Conv1d, convolution).weight.mul_(feature_scale / found)


def _by_number(words: Tensor, weights: Sequence[Tensor]) -> tuple[Sequence[Tensor], int]:
    """Return numbers times filters of width 1, (k F, B, v) per width, and the stride to add k with."""
    filters = [weight.permute(2, 0, 1).flatten(0, 1) for weight in weights]  # (k F, l) each
    products = torch.cat(filters) @ words.transpose(0, 1).flatten(1)  # (Σ k F, B v)
    shaped = products.unflatten(1, (len(words), words.shape[2]))  # (Σ k F, B, v)
    return shaped.split([len(each) for each in filters]), 2


def _by_pair(words: Tensor, weights: Sequence[Tensor]) -> tuple[Sequence[Tensor], int]:
    """Return pairs times filters of width 2, (k/2 F, B, v/2) per width, and the stride to add k/2 with."""
    pairs = F.pad(words, (0, words.shape[2] % 2)).transpose(1, 2).unflatten(1, (-1, 2)).flatten(2)
    even = [F.pad(weight, (0, weight.shape[2] % 2)).unflatten(2, (-1, 2)) for weight in weights]
    filters = [each.permute(2, 0, 3, 1).flatten(2).flatten(0, 1) for each in even]  # (k/2 F, 2 l) each
    products = F.linear(pairs, torch.cat(filters)).permute(2, 0, 1)  # (Σ k/2 F, B, v/2)
    return products.split([len(each) for each in filters]), 1
