"""The interface of encoders, and the registry of their names.

To add one, subclass `Encoder`, or `WordEncoder` if it reads word vectors, in any file that is imported before
the encoder is built:

    @ENCODERS.register("mean-of-neighbours")
    class MeanOfNeighbours(WordEncoder):
        ...

`--set encoder=mean-of-neighbours` then selects it. Its settings are its `settings_type`, which is inherited;
to add settings, subclass `EncoderSettings` or `WordEncoderSettings`.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from nlpcapsule.config.settings import EncoderSettings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.registry import ENCODERS, NetworkInputs


class Encoder(nn.Module, ABC):
    """Base class of encoders: token ids → states, one vector per token. `settings` are a `settings_type`."""

    settings_type: ClassVar[type[EncoderSettings]] = EncoderSettings  # its section of the configuration

    state_size: int  # H
    name_size: int  # E, the size of the vectors that words, names and documents are compared by
    rectified: ClassVar[bool] = False  # whether no state is negative
    own_rate: float | None = None  # peak learning rate of the encoder; None uses the network's

    def __init__(self, settings: Any, inputs: NetworkInputs) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode documents: token ids (B, l) → states (B, l, H), zero at padding, and the mask of real ones.

        If a document is read in windows, its number of states may differ from its number of tokens.
        """

    @abstractmethod
    def name_vectors(self, names: Ragged, idf: np.ndarray) -> np.ndarray:
        """Encode n label names: (n, E) rows of length 1, or 0 for a name without a known word.

        `idf` (V,) weighs words, for encoders that read words.
        """

    @abstractmethod
    def place(self, tokens: Tensor, states: Tensor, mask: Tensor, idf: Tensor) -> Tensor:
        """Return document vectors (B, E) that can be compared with name vectors.

        Tokens are (B, l), their states (B, l, H), the mask of real states (B, l), and weights of words (V,).
        """

    @abstractmethod
    def word_vectors(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Return vectors (B, l, E) to compare words by, from tokens (B, l) and their `token_states`."""

    def token_states(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode short texts like `forward`, but with exactly one state per token, in order."""
        return self(tokens)


def build_encoder(settings: EncoderSettings, inputs: NetworkInputs) -> Encoder:
    """Build the encoder that settings name."""
    return ENCODERS[settings.name](settings, inputs)


def to_unit_length(vectors: np.ndarray) -> np.ndarray:
    """Centre rows and scale them to length 1; rows of zeros stay zero."""
    named = (vectors != 0).any(axis=1, keepdims=True)  # (n, 1)
    centred = np.where(named, vectors - vectors.sum(axis=0) / max(1, named.sum()), 0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 1e-12)
