"""`kim-cnn`: Kim (EMNLP 2014), "Convolutional Neural Networks for Sentence Classification".

    c = ReLU(w · x_{t:t+k-1} + b)        convolution over time
    ĉ = max_t c                          one maximum per filter
    logit = W dropout(ĉ) + b

Also the paper's candidate generator: trained on the same documents, it nominates the labels to route to.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config.settings import EMBEDDING_SIZE, SystemSettings, Widths
from nlpcapsule.encoders.convolution import ConvolutionEncoder
from nlpcapsule.encoders.word_embedding import WordEmbedding
from nlpcapsule.networks.scored import Scored
from nlpcapsule.registry import System, register


class KimCNNSettings(SystemSettings):
    """`kim-cnn`: convolution over time, one maximum per filter (Kim 2014)."""

    windows: ClassVar[Widths] = (3, 4, 5)  # convolution widths, in tokens
    dropout: ClassVar[float] = 0.5  # before the output layer

    name: Literal["kim-cnn"] = "kim-cnn"
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    filters: int = Field(128, ge=1, description="filters per width")


class KimCNN(nn.Module):
    """Convolution over time, maximum over time, one linear layer.

    Args:
        settings: The network's settings.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: Id of the padding token.
        vectors: Initial word vectors.
    """

    def __init__(
        self,
        settings: KimCNNSettings,
        vocabulary_size: int,
        label_count: int,
        padding_id: int = 0,
        vectors: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        embedding = WordEmbedding(vocabulary_size, settings.embedding_size, padding_id, vectors)
        self.encoder = ConvolutionEncoder(embedding, settings.windows, settings.filters, dropout=0.0)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = nn.Linear(self.encoder.state_size, label_count)
        nn.init.constant_(self.output.bias, -4.0)  # most labels are absent from most documents

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score all labels: (B, l) → (B, n). `outputs` and `valid` must be None: nothing is routed."""
        states, _ = self.encoder(tokens)  # (B, l, H), zero at padding
        strongest = torch.amax(states, dim=1)  # (B, H); states are ≥ 0, so padding never wins
        return Scored(self.output(self.dropout(strongest)).float())


register(
    System(
        "kim-cnn",
        KimCNNSettings,
        labels=lambda settings, inputs: KimCNN(
            settings, inputs.vocabulary_size, inputs.label_count, inputs.padding_id, inputs.vectors
        ),
    )
)
