"""`released-xml-cnn`: the network that the released NLP-Capsule code calls XML-CNN.

    m = W^a ∘ X + b                       filters span all tokens, slide along the embedding
    logit = W_o (W_h m + b_h) + b_o       bottleneck

It shares the paper's convolution, and little with Liu et al. (2017), who convolve over time, pool, and use
ReLU and dropout: for that see `xml_cnn`. As released, nothing here is non-linear in the word vectors; `relu`
adds a ReLU after the convolution and after the bottleneck.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config import Config
from nlpcapsule.config.settings import EMBEDDING_SIZE, SystemSettings, Widths, check_widths
from nlpcapsule.encoders.word_encoder import WordEmbedding
from nlpcapsule.networks.embedding_convolution import EmbeddingConvolution
from nlpcapsule.networks.scored import Scored, output_layer
from nlpcapsule.registry import NetworkInputs, System, register


class ReleasedXMLCNNSettings(SystemSettings):
    """`released-xml-cnn`: what the released NLP-Capsule code calls XML-CNN; linear unless `relu` is set."""

    windows: ClassVar[Widths] = (2, 4, 8)  # filter widths along the embedding

    name: Literal["released-xml-cnn"] = "released-xml-cnn"
    embedding_size: int = Field(100, ge=8, description=EMBEDDING_SIZE)
    filters: int = Field(32, ge=1, description="filters per width")
    bottleneck: int = Field(512, ge=1, description="hidden layer before the output layer")
    relu: bool = Field(False, description="a ReLU after the convolution and after the bottleneck")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the bottleneck")

    def check(self, config: Config) -> None:
        """Reject filters that are wider than the embedding."""
        check_widths(self.windows, self.embedding_size, config)


class ReleasedXMLCNN(nn.Module):
    """Convolution along the embedding, bottleneck, output layer."""

    def __init__(self, settings: ReleasedXMLCNNSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.embedding = WordEmbedding(settings.embedding_size, inputs)
        self.convolution = EmbeddingConvolution(
            inputs, self.embedding.size, settings.windows, settings.filters
        )
        features = settings.filters * sum(self.convolution.map_sizes)
        self.activation = nn.ReLU() if settings.relu else nn.Identity()
        self.bottleneck = nn.Linear(features, settings.bottleneck)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = output_layer(settings.bottleneck, inputs.label_count)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score all labels: (B, l) → (B, n). `outputs` and `valid` must be None: nothing is routed."""
        maps = self.convolution(self.convolution.lookup(tokens, self.embedding))
        features = torch.cat([feature.flatten(1) for feature in maps], dim=1)  # (B, filters · Σ map sizes)
        hidden = self.activation(self.bottleneck(self.activation(features)))  # (B, bottleneck)
        return Scored(self.output(self.dropout(hidden)).float())


register(System("released-xml-cnn", ReleasedXMLCNNSettings, labels=ReleasedXMLCNN))
