"""`bi-encoder`: Reimers & Gurevych (2019), "Sentence-BERT": a transformer encodes each text separately.

    x = mean over tokens of transformer([CLS] text [SEP])                     one transformer for both texts
    logit = s · cos(x_q, x_a) + b

Without `tune` nothing is trained: the pretrained weights, s and b stay fixed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.answers.pretrained_defaults import PRETRAINED_ANSWER_DEFAULTS
from nlpcapsule.config.nesting import EncoderShorthand
from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.encoders.transformer import PretrainedSettings, TransformerEncoder, mean_state
from nlpcapsule.networks.answer_ranker import CosineRanker
from nlpcapsule.registry import NetworkInputs, System, register


class BiEncoderSettings(SystemSettings):
    """`bi-encoder`: cosine of a transformer's mean states (Reimers & Gurevych 2019)."""

    name: Literal["bi-encoder"] = "bi-encoder"
    encoder: Annotated[PretrainedSettings, EncoderShorthand] = Field(
        default_factory=PretrainedSettings,
        description="the transformer: a section with `path`, or its folder or hub id",
    )
    tune: bool = Field(False, description="fine-tune the transformer; false keeps it frozen")


class MeanStateText(nn.Module):
    """Encode a text as the mean of its tokens' states."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, l) to (B, h)."""
        mask = tokens != self.encoder.padding_id  # (B, l)
        return mean_state(self.encoder(tokens, mask), mask)


class BiEncoder(CosineRanker):
    """A transformer that encodes both texts, and the cosine of the results."""

    def __init__(self, settings: BiEncoderSettings, inputs: NetworkInputs) -> None:
        encoder = TransformerEncoder(settings.encoder.path, inputs)
        # A logistic regression on MiniLM's cosines in TREC QA's training part, as a transformer's small
        # learning rate hardly moves them.
        super().__init__(MeanStateText(encoder), scale=12.0, offset=-8.0)
        self.requires_grad_(settings.tune)


register(
    System(
        "bi-encoder",
        BiEncoderSettings,
        answers=BiEncoder,
        defaults=PRETRAINED_ANSWER_DEFAULTS,
        extra="transformers",
    )
)
