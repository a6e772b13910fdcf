"""`convolution-linear`: label-query's convolutional encoder with a linear head in place of capsules.

    h      = encoder(tokens)                token states                (B, l, H)
    x      = max over tokens of h           the document                (B, H)
    logit  = W dropout(x) + b                                           (B, n)

Kim's network (`kim-cnn`) is similar, with different windows and dropout.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.linear_head import LinearHead
from nlpcapsule.config.nesting import EncoderShorthand
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.encoders.convolution import ConvolutionSettings
from nlpcapsule.encoders.encoder import build_encoder
from nlpcapsule.networks.scored import Scored
from nlpcapsule.registry import NetworkInputs, System, register


class ConvolutionLinearSettings(SystemSettings):
    """`convolution-linear`: label-query's convolutions, their maximum over time and a linear head."""

    scores_candidates: ClassVar[bool] = True

    name: Literal["convolution-linear"] = "convolution-linear"
    encoder: Annotated[ConvolutionSettings, EncoderShorthand] = Field(
        default_factory=ConvolutionSettings, description="the convolutions"
    )
    dropout: float = Field(0.3, ge=0, lt=1, description="dropout before the linear head")


class ConvolutionLinear(nn.Module):
    """Word vectors, convolution over time, maximum over time, linear head."""

    def __init__(self, settings: ConvolutionLinearSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.encoder = build_encoder(settings.encoder, inputs)
        self.head = LinearHead(self.encoder.state_size, inputs.label_count, settings.dropout)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels; `valid` is not used, as a label's score does not depend on the other labels."""
        states, _ = self.encoder(tokens)  # (B, l, H), zero at padding
        documents = states.amax(dim=1)  # (B, H); states are ≥ 0, so padding never wins
        return Scored(self.head(documents, outputs))


register(
    System(
        "convolution-linear",
        ConvolutionLinearSettings,
        labels=ConvolutionLinear,
        defaults={"labels": {"text": {"max_tokens": 1000}, "training": {"epochs": 25}}},
    )
)
