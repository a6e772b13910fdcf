"""`convolution-linear`: label-query's convolutional encoder with a linear head in place of capsules.

    h      = encoder(tokens)                token states                (B, l, H)
    x      = max over tokens of h           the document                (B, H)
    logit  = W dropout(x) + b                                           (B, n)

Kim's network (`kim-cnn`) is of the same kind, with other windows and other dropout.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from nlpcapsule.baselines.linear_head import LinearHead
from nlpcapsule.config.linear_settings import ConvolutionLinearSettings
from nlpcapsule.encoders.build import build_encoder
from nlpcapsule.encoders.encoder import EncoderInputs
from nlpcapsule.networks.earlier_names import EMBEDDING_BESIDE_ENCODER, accept_earlier_names
from nlpcapsule.networks.scored import Scored


class ConvolutionLinear(nn.Module):
    """Word vectors, convolution over time, maximum over time, linear head.

    Args:
        settings: The network's settings.
        vocabulary_size: Number of tokens.
        label_count: n.
        padding_id: The token that fills rows up.
        vectors: Word vectors to start from.
    """

    def __init__(
        self,
        settings: ConvolutionLinearSettings,
        vocabulary_size: int,
        label_count: int,
        padding_id: int = 0,
        vectors: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.encoder = build_encoder(settings, EncoderInputs(vocabulary_size, padding_id, vectors))
        self.head = LinearHead(self.encoder.state_size, label_count, settings.dropout)
        accept_earlier_names(self, EMBEDDING_BESIDE_ENCODER)

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Scores labels.

        Args:
            tokens: (B, l) token ids, filled up at the end.
            outputs: None for all labels, (n',) ids for the batch, or (B, n') ids per document.
            valid: Not used: a label's score does not depend on the other labels.
        """
        states, _ = self.encoder(tokens)  # (B, l, H), zero at padding
        documents = states.amax(dim=1)  # (B, H); states are ≥ 0, so padding never wins
        return Scored(self.head(documents, outputs))
