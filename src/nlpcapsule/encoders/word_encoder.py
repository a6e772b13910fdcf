"""Base class of encoders over word vectors."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config.settings import EMBEDDING_SIZE, EncoderSettings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.encoder import Encoder
from nlpcapsule.encoders.word_embedding import WordEmbedding, mean_word_vectors, to_unit_length
from nlpcapsule.registry import NetworkInputs


class WordEncoderSettings(EncoderSettings):
    """Settings that encoders over word vectors share."""

    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    word_dropout: float = Field(0.0, ge=0, lt=1, description="fraction of the words dropped in training")
    token_dropout: float = Field(0.15, ge=0, lt=1, description="dropout on word vectors and states")


class WordEncoder(Encoder):
    """Token ids → word vectors → states; a subclass sets `state_size` and implements `read`."""

    settings_type: ClassVar[type[WordEncoderSettings]] = WordEncoderSettings

    def __init__(self, embedding: WordEmbedding, word_dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = embedding
        self.word_dropout = nn.Dropout1d(word_dropout)  # over (B, l, v): whole words
        self.name_size = embedding.size

    @abstractmethod
    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return states (B, l, H), zero at padding, of word vectors (B, l, v) and their mask (B, l)."""

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode documents: (B, l) → states (B, l, H) and the mask (B, l) of real tokens."""
        words, mask = self.embedding(tokens)  # (B, l, v)
        return self.read(self.word_dropout(words), mask), mask

    def name_vectors(self, names: Ragged, idf: np.ndarray) -> np.ndarray:
        """Return (n, v) means of the names' word vectors, weighted by idf and scaled to length 1."""
        vectors = self.embedding.table.weight.detach().cpu().numpy()  # (V, v)
        return to_unit_length(mean_word_vectors(names, vectors, idf))

    def place(self, tokens: Tensor, states: Tensor, mask: Tensor, idf: Tensor) -> Tensor:
        """Return (B, v) means of the documents' word vectors, weighted by idf."""
        weights = idf[tokens].unsqueeze(-1)  # (B, l, 1)
        return (weights * self.embedding(tokens)[0]).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-6)

    def word_vectors(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Return the word vectors (B, l, v) themselves."""
        return self.embedding(tokens)[0]


def new_embedding(size: int, inputs: NetworkInputs) -> WordEmbedding:
    """Return word vectors of this size that start from the given vectors, or at random."""
    return WordEmbedding(inputs.vocabulary_size, size, inputs.padding_id, inputs.vectors)
