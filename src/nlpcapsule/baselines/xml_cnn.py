"""`xml-cnn`: Liu et al. (SIGIR 2017), "Deep Learning for Extreme Multi-label Text Classification".

    c = ReLU(w · x_{t:t+k-1} + b)                      convolution over time
    P(c) = [max c over the 1st part, …, p-th part]     dynamic max pooling: p maxima per filter
    logit = W_o dropout(ReLU(W_h P + b_h)) + b_o       bottleneck

The p parts divide a document's length without padding, so padding has no effect.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config.settings import EMBEDDING_SIZE, SystemSettings, Widths
from nlpcapsule.encoders.convolution import ConvolutionEncoder, ConvolutionSettings
from nlpcapsule.networks.scored import Scored, output_layer
from nlpcapsule.registry import NetworkInputs, System, register


class XMLCNNSettings(SystemSettings):
    """`xml-cnn`: dynamic max pooling and a bottleneck (Liu et al. 2017)."""

    windows: ClassVar[Widths] = (2, 4, 8)  # convolution widths, in tokens
    pools: ClassVar[int] = 8  # equal parts of the document, each giving one maximum per filter
    token_dropout: ClassVar[float] = 0.25  # on word vectors
    dropout: ClassVar[float] = 0.5  # on the bottleneck

    name: Literal["xml-cnn"] = "xml-cnn"
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    filters: int = Field(128, ge=1, description="filters per width")
    bottleneck: int = Field(512, ge=1, description="hidden layer before the output layer")


class XMLCNN(nn.Module):
    """Convolution over time, dynamic max pooling, bottleneck, output layer."""

    def __init__(self, settings: XMLCNNSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.pools = settings.pools
        self.word_dropout = nn.Dropout(settings.token_dropout)
        size, windows, filters = settings.embedding_size, settings.windows, settings.filters
        convolution = ConvolutionSettings(
            embedding_size=size, windows=windows, filters=filters, token_dropout=0.0
        )
        self.encoder = ConvolutionEncoder(convolution, inputs)
        self.bottleneck = nn.Linear(self.encoder.state_size * settings.pools, settings.bottleneck)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = output_layer(settings.bottleneck, inputs.label_count)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score all labels: (B, l) → (B, n). `outputs` and `valid` must be None: nothing is routed."""
        words, mask = self.encoder.embedding(tokens)
        states = self.encoder.read(self.word_dropout(words), mask)  # (B, l, H), zero at padding
        hidden = torch.relu(self.bottleneck(dynamic_max_pool(states, mask, self.pools).flatten(1)))
        return Scored(self.output(self.dropout(hidden)).float())


def dynamic_max_pool(states: Tensor, mask: Tensor, pools: int) -> Tensor:
    """Return the maximum of non-negative states (B, l, H) over each of p equal parts: (B, p, H)."""
    lengths = mask.sum(dim=1, keepdim=True)  # (B, 1)
    position = torch.arange(states.shape[1], device=states.device)  # (l,)
    part = (position * pools // lengths).clamp(max=pools - 1)  # (B, l); padding's zeros join the last part
    index = part.unsqueeze(-1).expand_as(states)
    start = states.new_zeros(states.shape[0], pools, states.shape[2])
    return start.scatter_reduce(1, index, states, reduce="amax")


register(System("xml-cnn", XMLCNNSettings, labels=XMLCNN))
