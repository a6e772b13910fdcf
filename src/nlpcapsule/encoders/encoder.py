"""The interface of encoders, and the registry of their names.

To add one, subclass `Encoder`, or `WordEncoder` if it reads word vectors, in any file that is imported before
the encoder is built:

    @register_encoder("mean-of-neighbours")
    class MeanOfNeighbours(WordEncoder):
        ...

`--set encoder=mean-of-neighbours` then selects it. Its settings are its `settings_type`, which is inherited;
to add settings, subclass `EncoderSettings` or `WordEncoderSettings`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from torch import Tensor, nn

from nlpcapsule.config.settings import EncoderSettings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.registry import ENCODERS


@dataclass(frozen=True, eq=False)
class EncoderInputs:
    """Facts about the tokens that an encoder will read.

    Attributes:
        vocabulary_size: V, number of tokens.
        padding_id: Id of the padding token.
        vectors: (V, v') initial word vectors; None for random vectors.
        length: Maximum tokens of a document; None if unknown.
        transformer: Configuration of a pretrained transformer if its weights are loaded later; None reads the
            transformer that the settings name.
    """

    vocabulary_size: int
    padding_id: int = 0
    vectors: np.ndarray | None = None
    length: int | None = None
    transformer: dict[str, Any] | None = None


class Encoder(nn.Module, ABC):
    """Base class of encoders: token ids → states, one vector per token.

    Attributes:
        settings_type: The class of its section of the configuration.
        state_size: H, the size of a state.
        name_size: E, the size of the vectors that words, names and documents are compared by.
        own_rate: Peak learning rate of the encoder; None uses the network's.
    """

    settings_type: ClassVar[type[EncoderSettings]] = EncoderSettings

    state_size: int
    name_size: int
    own_rate: float | None = None

    @classmethod
    @abstractmethod
    def from_settings(cls, settings: Any, inputs: EncoderInputs) -> Self:
        """Build the encoder from its settings, a `settings_type`."""

    @abstractmethod
    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode documents.

        Args:
            tokens: (B, l) token ids, padded at the end.

        Returns:
            States (B, l, H), zero at padding, and a mask (B, l) that is True at real ones. If a document is
            read in windows, its number of states may differ from its number of tokens.
        """

    @abstractmethod
    def name_vectors(self, names: Ragged, idf: np.ndarray) -> np.ndarray:
        """Encode the names of labels.

        Args:
            names: n rows of token ids.
            idf: (V,) weights of words, for encoders that read words.

        Returns:
            (n, E) rows of length 1, or 0 for a name without a known word.
        """

    @abstractmethod
    def place(self, tokens: Tensor, states: Tensor, mask: Tensor, idf: Tensor) -> Tensor:
        """Return document vectors that can be compared with name vectors.

        Args:
            tokens: (B, l) token ids.
            states: (B, l, H) their states.
            mask: (B, l) of the real states.
            idf: (V,) weights of words.

        Returns:
            (B, E).
        """

    @abstractmethod
    def word_vectors(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Return vectors (B, l, E) to compare words by, from tokens (B, l) and their `token_states`."""

    def token_states(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode short texts like `forward`, but with exactly one state per token, in order."""
        return self(tokens)


AnyEncoder = TypeVar("AnyEncoder", bound=Encoder)


def register_encoder(name: str) -> Callable[[type[AnyEncoder]], type[AnyEncoder]]:
    """Register a class under a name that the section `encoder` can choose.

    Raises:
        ValueError: If another class has that name.
    """

    def register(encoder: type[AnyEncoder]) -> type[AnyEncoder]:
        known = ENCODERS[name] if name in ENCODERS else encoder  # noqa: SIM401
        if (known.__module__, known.__qualname__) != (encoder.__module__, encoder.__qualname__):
            raise ValueError(
                f"cannot register {encoder.__qualname__} as {name!r}: {known.__qualname__} of "
                f"{known.__module__} has that name; choose another"
            )
        return ENCODERS.register(name)(encoder)

    return register
