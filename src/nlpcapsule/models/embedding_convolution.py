"""The paper's convolution: filters span all token positions and slide along the embedding axis."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from nlpcapsule.errors import ConfigError


class EmbeddingConvolution(nn.Module):
    """Filters W^a ∈ R^{l×k}, stride 2: one feature per step along the embedding.

    Args:
        length: l, the fixed number of token positions.
        size: v, numbers per word vector.
        windows: Widths k.
        filters: Filters per width.
        padding_id: Fills rows up to l.
    """

    def __init__(self, length: int, size: int, windows: Sequence[int], filters: int, padding_id: int) -> None:
        super().__init__()
        if max(windows) > size:
            raise ConfigError(
                f"model.windows={list(windows)}: a filter of width {max(windows)} does not fit on word "
                f"vectors of {size} numbers"
            )
        self.length, self.padding_id = length, padding_id
        self.convolutions = nn.ModuleList(nn.Conv1d(length, filters, width, stride=2) for width in windows)
        self.map_sizes = [(size - width) // 2 + 1 for width in windows]

    def fit(self, tokens: Tensor) -> Tensor:
        """Fills rows of tokens up, or cuts them, to l positions."""
        tokens = tokens[:, : self.length]
        return nn.functional.pad(tokens, (0, self.length - tokens.shape[1]), value=self.padding_id)

    def forward(self, words: Tensor) -> list[Tensor]:
        """(B, l, v) → one (B, filters, (v-k)/2+1) feature map per width."""
        return [convolution(words) for convolution in self.convolutions]
