"""`official`: the released NLP-Capsule code, where it differs from the paper and changes results.

No ReLU after the convolution; the primary layer is a dense map from 32 filters to 32·16 channels, and the
flattening views (32·16, positions) memory as (…, 16) without permuting, so a "capsule" is 16 neighbouring
positions of one channel; one W per pair of capsule and label, started at a standard deviation near 1e-4;
κ = 0.5; the kernel is not clamped; no leaky softmax; the adaptive stop is decided on the batch's mean in
training. At inference it ranks one document at a time, so the batch's mean is that of the document.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.compression import CapsuleCompression
from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.routing import Routed, adaptive_kde
from nlpcapsule.capsules.squash import squash
from nlpcapsule.capsules.votes import Votes
from nlpcapsule.config import Config
from nlpcapsule.config.settings import EMBEDDING_SIZE, Widths, check_widths
from nlpcapsule.encoders.word_encoder import WordEmbedding
from nlpcapsule.networks.embedding_convolution import EmbeddingConvolution
from nlpcapsule.networks.routing_choice import RoutedSettings
from nlpcapsule.networks.scored import Scored, log_odds
from nlpcapsule.registry import NetworkInputs, System, register


class OfficialSettings(RoutedSettings):
    """`official`: the released code, for comparison."""

    shuffles: ClassVar[bool] = False
    windows: ClassVar[Widths] = (2, 4, 8)  # filter widths along the embedding
    routing: ClassVar[str] = "adaptive-kde"
    kappa: ClassVar[float] = 0.5  # squash: ‖x‖²/(κ+‖x‖²)

    name: Literal["official"] = "official"
    embedding_size: int = Field(100, ge=8, description=EMBEDDING_SIZE)
    filters: int = Field(32, ge=1, description="filters per width")
    capsule_size: int = Field(16, ge=2, description="capsule size")
    condensed: int = Field(128, ge=1, description="condensed capsules")
    iterations: int = Field(
        50, ge=1, description="maximum routing iterations; the released code has no limit"
    )

    def check(self, config: Config) -> None:
        """Reject filters that are wider than the embedding."""
        check_widths(self.windows, self.embedding_size, config)


_PAIR_STD = 1e-4


class OfficialNetwork(nn.Module):
    """The released chain for labels."""

    def __init__(self, settings: OfficialSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.settings = settings
        filters, size = settings.filters, settings.capsule_size
        self.embedding = WordEmbedding(settings.embedding_size, inputs)
        self.convolution = EmbeddingConvolution(inputs, self.embedding.size, settings.windows, filters)
        self.primary = nn.ModuleList(nn.Conv1d(filters, filters * size, 1) for _ in settings.windows)
        self.compression = CapsuleCompression(filters * sum(self.convolution.map_sizes), settings.condensed)
        self.transform = PairTransforms(inputs.label_count, settings.condensed, size, _PAIR_STD)  # W_ij

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score labels; see `LabelQueryNetwork.forward` for the arguments."""
        maps = self.convolution(self.embedding(self.convolution.fit(tokens))[0])
        capsules = [
            layer(feature).flatten(1).unflatten(1, (-1, self.settings.capsule_size))
            for layer, feature in zip(self.primary, maps, strict=True)
        ]
        primary = squash(torch.cat(capsules, dim=1), self.settings.kappa)  # (B, P, d)
        condensed = self.compression(primary)  # (B, m, d)
        routed = self.route(self.transform(condensed, outputs), valid)
        return Scored(log_odds(routed.activations), routed.iterations, routed.agreement)

    def route(self, votes: Votes, valid: Tensor | None = None) -> Routed:
        """Route û_{j|i} as the released code does; `valid` (B, n) is False at padding."""
        return adaptive_kde(
            votes,
            max_iterations=self.settings.most_iterations,
            eps=self.settings.epsilon,
            softmax="standard",
            kappa=self.settings.kappa,
            valid=valid,
            stop_together=self.training,
            clamp_kernel=False,
        )


register(
    System(
        "official",
        OfficialSettings,
        labels=OfficialNetwork,
        defaults={
            "labels": {
                "training": {"negatives": "batch", "weight_decay": 0.0},
                "inference": {"candidates": 200},
            }
        },
    )
)
