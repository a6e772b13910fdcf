"""`bow-cnn`: Johnson & Zhang (NAACL 2015), "Effective Use of Word Order for Text Categorization with CNNs".

    r_t = bag of the words x_t … x_{t+k-1}                      a region: which words, not in which order
    c_t = ReLU(W r_t + b) = ReLU(Σ_i W[x_{t+i}] + b)            one vector of weights per word, summed
    P(c) = [average of c over the 1st part, …, p-th part]       or the maximum
    logit = W_o dropout(P) + b_o

W is a table with a row per word, so the sparse r_t is never computed. The rows are the convolution's weights,
not word vectors; given vectors are ignored. A word that occurs twice in a region counts twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.xml_cnn import dynamic_max_pool
from nlpcapsule.config.settings import SystemSettings, Widths
from nlpcapsule.encoders.word_encoder import WordEmbedding
from nlpcapsule.networks.scored import Scored, output_layer
from nlpcapsule.registry import NetworkInputs, System, register


class BowCNNSettings(SystemSettings):
    """`bow-cnn`: convolution over bags of neighbouring words (Johnson & Zhang 2015); uses no word vectors."""

    windows: ClassVar[Widths] = (20,)  # region sizes, in tokens
    pools: ClassVar[int] = 10  # equal parts of the document, pooled separately
    pooling: ClassVar[Literal["average", "max"]] = "average"  # pooling of a part
    dropout: ClassVar[float] = 0.5  # before the output layer

    name: Literal["bow-cnn"] = "bow-cnn"
    filters: int = Field(1000, ge=1, description="filters per region size")


class BowCNN(nn.Module):
    """Convolution over bags of words, pooling over parts of the document, one linear layer."""

    def __init__(self, settings: BowCNNSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.padding_id, self.pools = inputs.padding_id, settings.pools
        self.regions = nn.ModuleList(
            BagOfWordsRegions(inputs, width, settings.filters) for width in settings.windows
        )
        self.pool = dynamic_average_pool if settings.pooling == "average" else dynamic_max_pool
        self.dropout = nn.Dropout(settings.dropout)
        features = settings.filters * len(settings.windows) * settings.pools
        self.output = output_layer(features, inputs.label_count)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score all labels: (B, l) → (B, n). `outputs` and `valid` must be None: nothing is routed."""
        mask = tokens != self.padding_id  # (B, l)
        states = torch.cat([regions(tokens) for regions in self.regions], dim=-1)  # (B, l, H)
        pooled = self.pool(states * mask.unsqueeze(-1), mask, self.pools)  # (B, p, H)
        return Scored(self.output(self.dropout(pooled.flatten(1))).float())


class BagOfWordsRegions(nn.Module):
    """ReLU(Σ_i W[x_{t+i}] + b) for the region of k words around every position; padding adds nothing."""

    def __init__(self, inputs: NetworkInputs, width: int, filters: int) -> None:
        super().__init__()
        self.width = width
        self.weights = WordEmbedding(filters, replace(inputs, vectors=None))  # W, a row per word
        self.bias = nn.Parameter(torch.zeros(filters))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, l) to (B, l, filters)."""
        rows, _ = self.weights(tokens)  # (B, l, filters)
        left = (self.width - 1) // 2
        padded = nn.functional.pad(rows.transpose(1, 2), (left, self.width - 1 - left))
        # A sliding average times k is a sliding sum, without the accumulated rounding of differences of
        # running totals.
        sums = nn.functional.avg_pool1d(padded, self.width, stride=1) * self.width  # (B, filters, l)
        return torch.relu(sums.transpose(1, 2) + self.bias)


def dynamic_average_pool(states: Tensor, mask: Tensor, pools: int) -> Tensor:
    """Average (B, l, H), zero at padding, over each of p equal parts of the document: (B, p, H)."""
    lengths = mask.sum(dim=1, keepdim=True)  # (B, 1)
    position = torch.arange(states.shape[1], device=states.device)  # (l,)
    part = (position * pools // lengths).clamp(max=pools - 1)  # (B, l); padding's zeros join the last part
    start = states.new_zeros(states.shape[0], pools, states.shape[2])
    totals = start.scatter_add(1, part.unsqueeze(-1).expand_as(states), states)  # (B, p, H)
    counts = states.new_zeros(states.shape[0], pools).scatter_add(1, part, mask.to(states.dtype))  # (B, p)
    return totals / counts.clamp(min=1).unsqueeze(-1)  # a short document has empty parts: zero


register(System("bow-cnn", BowCNNSettings, labels=BowCNN))
