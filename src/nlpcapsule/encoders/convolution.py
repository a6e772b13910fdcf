"""Convolutions over time on word vectors, whose states depend on neighbouring words."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.dropout import Dropout, is_worthwhile, rectify_and_drop
from nlpcapsule.config.settings import Widths
from nlpcapsule.encoders.encoder import register_encoder
from nlpcapsule.encoders.word_embedding import WordEmbedding
from nlpcapsule.encoders.word_encoder import WordEncoder, WordEncoderSettings, new_embedding
from nlpcapsule.registry import NetworkInputs


class ConvolutionSettings(WordEncoderSettings):
    """`convolution`: convolutions of several widths over word vectors."""

    name: Literal["convolution"] = "convolution"
    windows: Widths = Field((1, 3, 5, 9), min_length=1, description="convolution widths, in tokens")
    filters: int = Field(256, ge=1, description="filters per width")


@register_encoder("convolution")
class ConvolutionEncoder(WordEncoder):
    """Parallel convolutions of several widths over time, with ReLU and concatenated outputs.

    A document's states do not depend on the amount of padding: padding is the zero vector, like everything
    beyond the row's end, and states at padding are zeroed. Dropout is on word vectors and on states.
    """

    settings_type: ClassVar[type[ConvolutionSettings]] = ConvolutionSettings

    def __init__(
        self,
        embedding: WordEmbedding,
        windows: Sequence[int],
        filters: int,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding, word_dropout)
        self.state_size = filters * len(windows)
        self.dropout = Dropout(dropout)
        self.windows = tuple(windows)
        self.convolutions = nn.ModuleList(nn.Conv1d(embedding.size, filters, width) for width in windows)

    @classmethod
    def from_settings(cls, settings: ConvolutionSettings, inputs: NetworkInputs) -> Self:
        """Build the encoder from its settings."""
        embedding = new_embedding(settings.embedding_size, inputs)
        windows, filters = settings.windows, settings.filters
        return cls(embedding, windows, filters, settings.token_dropout, settings.word_dropout)

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Map word vectors (B, l, v) and a mask (B, l) to states (B, l, H)."""
        words = self.dropout(words).transpose(1, 2)  # (B, v, l)
        states = []
        for width, convolution in zip(self.windows, self.convolutions, strict=True):
            left = (width - 1) // 2
            states.append(convolution(nn.functional.pad(words, (left, width - 1 - left))))  # (B, filters, l)
        joined = torch.cat(states, dim=1)  # (B, H, l)
        if self.training and self.dropout.p and is_worthwhile(joined):
            # Later steps read states one after the other: copying them once here saves copies there.
            return rectify_and_drop(joined.transpose(1, 2).contiguous(), mask.unsqueeze(-1), self.dropout.p)
        return self.dropout(torch.relu(joined).transpose(1, 2) * mask.unsqueeze(-1))  # (B, l, H)
