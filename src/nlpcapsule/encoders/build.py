"""From settings to an encoder."""

from __future__ import annotations

from typing import Protocol

# Importing an encoder's file registers it.
from nlpcapsule.encoders import bilstm, convolution  # noqa: F401
from nlpcapsule.encoders.encoder import ENCODERS, Encoder, EncoderInputs
from nlpcapsule.encoders.windowed_transformer import WindowedTransformer


class EncoderSettings(Protocol):
    """Settings of a network that name its encoder."""

    @property
    def encoder(self) -> str:
        """A registered name, or a pretrained transformer: its folder or its hub id."""


def build_encoder(settings: EncoderSettings, inputs: EncoderInputs) -> Encoder:
    """Build the encoder that settings name; a name that is not registered is a pretrained transformer."""
    return ENCODERS.get(settings.encoder, WindowedTransformer).from_settings(settings, inputs)
