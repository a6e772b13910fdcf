"""`transformer-linear`: a pretrained transformer, fine-tuned, with a linear head in place of capsules.

    h      = transformer(tokens)            token states, read in windows as by label-query   (B, L, h)
    x      = mean over tokens of h          the document                                      (B, h)
    logit  = W dropout(x) + b                                                                 (B, n)

This is what Hugging Face's example of multi-label classification does.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.linear_head import LinearHead
from nlpcapsule.config import Config
from nlpcapsule.config.nesting import EncoderShorthand
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.encoders.build import build_encoder
from nlpcapsule.encoders.encoder import EncoderInputs
from nlpcapsule.encoders.transformer import mean_state
from nlpcapsule.encoders.windowed_transformer import TransformerSettings
from nlpcapsule.networks.scored import Scored
from nlpcapsule.registry import System, register


class TransformerLinearSettings(SystemSettings):
    """`transformer-linear`: a pretrained transformer, fine-tuned, its mean state and a linear head."""

    scores_candidates: ClassVar[bool] = True

    name: Literal["transformer-linear"] = "transformer-linear"
    encoder: Annotated[TransformerSettings, EncoderShorthand] = Field(
        default_factory=TransformerSettings, description="the transformer: a section, or its folder or hub id"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout before the linear head")

    def check(self, config: Config) -> None:
        """Reject settings that the transformer does not support."""
        self.encoder.check(config)


class TransformerLinear(nn.Module):
    """Transformer, mean over time, linear head.

    Args:
        settings: The network's settings.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: Id of the padding token.
        length: Maximum tokens of a document.
        transformer: The transformer's configuration where its weights will be loaded; None reads
            `settings.encoder.path`.
    """

    def __init__(
        self,
        settings: TransformerLinearSettings,
        vocabulary_size: int,
        label_count: int,
        padding_id: int,
        length: int,
        transformer: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        inputs = EncoderInputs(vocabulary_size, padding_id, length=length, transformer=transformer)
        self.encoder = build_encoder(settings.encoder, inputs)
        self.head = LinearHead(self.encoder.state_size, label_count, settings.dropout)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels.

        Args:
            tokens: (B, l) token ids, padded at the end.
            outputs: None for all labels, (n',) ids for the batch, or (B, n') ids per document.
            valid: Not used: a label's score does not depend on the other labels.
        """
        documents = mean_state(*self.encoder(tokens))  # (B, h)
        return Scored(self.head(documents, outputs))


register(
    System(
        "transformer-linear",
        TransformerLinearSettings,
        labels=lambda settings, inputs: TransformerLinear(
            settings,
            inputs.vocabulary_size,
            inputs.label_count,
            inputs.padding_id,
            inputs.length,
            inputs.transformer,
        ),
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
