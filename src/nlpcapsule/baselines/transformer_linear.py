"""`transformer-linear`: a pretrained transformer, fine-tuned, with a linear head in place of capsules.

    h      = transformer(tokens)            token states, read in windows as by label-query   (B, L, h)
    x      = mean over tokens of h          the document                                      (B, h)
    logit  = W dropout(x) + b                                                                 (B, n)

This is what Hugging Face's example of multi-label classification does.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.linear_head import LinearHead
from nlpcapsule.config.nesting import EncoderShorthand
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.encoders.encoder import build_encoder
from nlpcapsule.encoders.transformer import mean_state
from nlpcapsule.encoders.windowed_transformer import TransformerSettings
from nlpcapsule.networks.scored import Scored
from nlpcapsule.registry import NetworkInputs, System, register


class TransformerLinearSettings(SystemSettings):
    """`transformer-linear`: a pretrained transformer, fine-tuned, its mean state and a linear head."""

    scores_candidates: ClassVar[bool] = True

    name: Literal["transformer-linear"] = "transformer-linear"
    encoder: Annotated[TransformerSettings, EncoderShorthand] = Field(
        default_factory=TransformerSettings, description="the transformer: a section, or its folder or hub id"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout before the linear head")


class TransformerLinear(nn.Module):
    """Transformer, mean over time, linear head."""

    def __init__(self, settings: TransformerLinearSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.encoder = build_encoder(settings.encoder, inputs)
        self.head = LinearHead(self.encoder.state_size, inputs.label_count, settings.dropout)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels; `valid` is not used, as a label's score does not depend on the other labels."""
        documents = mean_state(*self.encoder(tokens))  # (B, h)
        return Scored(self.head(documents, outputs))


register(
    System(
        "transformer-linear",
        TransformerLinearSettings,
        labels=TransformerLinear,
        defaults={
            "labels": {
                "text": {"max_tokens": 512},  # one window
                "training": {"epochs": 15, "learning_rate": 3e-3},
                # Dropout is on the mean of the states.
                "model": {"encoder": {"encoder_learning_rate": 2e-4, "token_dropout": 0.0}},
            }
        },
        extra="transformers",
    )
)
