"""Build an encoder from its settings."""

from __future__ import annotations

from nlpcapsule.config.settings import EncoderSettings
from nlpcapsule.encoders.encoder import Encoder, EncoderInputs
from nlpcapsule.registry import find_encoder


def build_encoder(settings: EncoderSettings, inputs: EncoderInputs) -> Encoder:
    """Build the encoder that settings name."""
    encoder: type[Encoder] = find_encoder(settings.name)
    return encoder.from_settings(settings, inputs)
