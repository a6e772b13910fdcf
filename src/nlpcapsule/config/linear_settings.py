"""Settings of the networks with a linear head: an encoder, a pooled text, one row of weights per label.

They share `label-query`'s encoders, so that a comparison shows what its capsules add.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nlpcapsule.config.answer_baselines import PretrainedSettings
from nlpcapsule.config.settings import EMBEDDING_SIZE, Settings, Widths

_WINDOW = "tokens read at once; longer documents are cut into windows"


class ConvolutionLinearSettings(Settings):
    """`convolution-linear`: label-query's convolutions, their maximum over time and a linear head."""

    encoder: ClassVar[str] = "convolution"

    name: Literal["convolution-linear"] = "convolution-linear"
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    windows: Widths = Field((1, 3, 5, 9), min_length=1, description="convolution widths, in tokens")
    filters: int = Field(256, ge=1, description="filters per width")
    word_dropout: float = Field(0.0, ge=0, lt=1, description="part of the words left out in training")
    token_dropout: float = Field(0.15, ge=0, lt=1, description="dropout on word vectors and encoder states")
    dropout: float = Field(0.3, ge=0, lt=1, description="dropout before the linear head")


class TransformerLinearSettings(PretrainedSettings):
    """`transformer-linear`: a pretrained transformer, fine-tuned, its mean state and a linear head."""

    token_dropout: ClassVar[float] = 0.0  # dropout is on the mean of the states

    name: Literal["transformer-linear"] = "transformer-linear"
    window: int = Field(512, ge=3, description=_WINDOW)
    stride: int | None = Field(
        None, ge=1, description="tokens from one window's start to the next; none: even parts"
    )
    encoder_rate: float = Field(2e-4, gt=0, description="the peak of the transformer's own learning rate")
    checkpointing: bool = Field(
        False, description="computes states again for the gradient, which saves memory"
    )
    word_dropout: float = Field(0.0, ge=0, lt=1, description="part of the word pieces left out in training")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout before the linear head")


class EmbeddingLinearSettings(PretrainedSettings):
    """`embedding-linear`: frozen sentence embeddings and a logistic regression per label."""

    name: Literal["embedding-linear"] = "embedding-linear"
    window: int = Field(512, ge=3, description=_WINDOW)
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the embeddings")


LinearModelSettings = ConvolutionLinearSettings | TransformerLinearSettings | EmbeddingLinearSettings

LINEAR_MODELS: dict[str, type[Settings]] = {
    "convolution-linear": ConvolutionLinearSettings,
    "transformer-linear": TransformerLinearSettings,
    "embedding-linear": EmbeddingLinearSettings,
}
