"""`kim-cnn`: Kim (EMNLP 2014), "Convolutional Neural Networks for Sentence Classification".

    c = ReLU(w · x_{t:t+k-1} + b)        convolution over time
    ĉ = max_t c                          one maximum per filter
    logit = W dropout(ĉ) + b

Also the paper's candidate generator: trained on the same documents, it nominates the labels to route to.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config.settings import EMBEDDING_SIZE, SystemSettings, Widths
from nlpcapsule.encoders.convolution import ConvolutionEncoder, ConvolutionSettings
from nlpcapsule.networks.scored import Scored, output_layer
from nlpcapsule.registry import NetworkInputs, System, register


class KimCNNSettings(SystemSettings):
    """`kim-cnn`: convolution over time, one maximum per filter (Kim 2014)."""

    windows: ClassVar[Widths] = (3, 4, 5)  # convolution widths, in tokens
    dropout: ClassVar[float] = 0.5  # before the output layer

    name: Literal["kim-cnn"] = "kim-cnn"
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    filters: int = Field(128, ge=1, description="filters per width")


class KimCNN(nn.Module):
    """Convolution over time, maximum over time, one linear layer."""

    def __init__(self, settings: KimCNNSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        size, windows, filters = settings.embedding_size, settings.windows, settings.filters
        convolution = ConvolutionSettings(
            embedding_size=size, windows=windows, filters=filters, token_dropout=0.0
        )
        self.encoder = ConvolutionEncoder(convolution, inputs)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = output_layer(self.encoder.state_size, inputs.label_count)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score all labels: (B, l) → (B, n). `outputs` and `valid` must be None: nothing is routed."""
        states, _ = self.encoder(tokens)  # (B, l, H), zero at padding
        largest = torch.amax(states, dim=1)  # (B, H); states are ≥ 0, so padding never wins
        return Scored(self.output(self.dropout(largest)).float())


register(System("kim-cnn", KimCNNSettings, labels=KimCNN))
