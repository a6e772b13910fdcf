"""Word vectors, and the base class of encoders over them."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.config.settings import EMBEDDING_SIZE, EncoderSettings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.encoder import Encoder, to_unit_length
from nlpcapsule.registry import NetworkInputs

UNKNOWN_RANGE = 0.25  # range of the uniform distribution for words without a given vector


class WordEmbedding(nn.Module):
    """Trainable word vectors (V, v); padding is always the zero vector.

    They start from uniform(-0.25, 0.25), or from given vectors (V, v'). Given vectors that are shorter than
    `size` are extended with random values, which are learned; longer ones keep their size.
    """

    def __init__(self, size: int, inputs: NetworkInputs) -> None:
        super().__init__()
        self.size = embedding_size(size, inputs.vectors)
        self.padding_id = inputs.padding_id
        self.table = nn.Embedding(inputs.vocabulary_size, self.size, padding_idx=self.padding_id)
        with torch.no_grad():
            self.table.weight.uniform_(-UNKNOWN_RANGE, UNKNOWN_RANGE)
            if inputs.vectors is not None:
                self.table.weight[:, : inputs.vectors.shape[1]] = torch.from_numpy(inputs.vectors)
            self.table.weight[self.padding_id] = 0

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map token ids (B, l) to word vectors (B, l, v) and a mask (B, l), True at real tokens."""
        return self.table(tokens), tokens != self.padding_id

    @torch.no_grad()
    def weight_by_frequency(self, counts: np.ndarray, smoothing: float) -> None:
        """Centre the vectors and weight them by smooth inverse frequency (Arora et al. 2017).

        x_w ← a / (a + p(w)) · (x_w − Σ_w p(w) x_w). Otherwise a sum over many positions is dominated by what
        all documents share: frequent words, and the common direction of all vectors. `counts` (V,) are the
        words' occurrences in the training part; a word of the relative frequency a gets weight one half.
        """
        share = torch.from_numpy(counts / max(1, counts.sum())).to(self.table.weight)  # p (V,)
        centred = self.table.weight - share @ self.table.weight  # (V, v)
        self.table.weight.copy_(centred * (smoothing / (smoothing + share)).unsqueeze(-1))
        self.table.weight[self.padding_id] = 0


def embedding_size(size: int, vectors: np.ndarray | None) -> int:
    """Return the word vector size: the larger of `size` and that of given vectors (V, v')."""
    return size if vectors is None else max(size, vectors.shape[1])


class WordEncoderSettings(EncoderSettings):
    """Settings that encoders over word vectors share."""

    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    word_dropout: float = Field(0.0, ge=0, lt=1, description="fraction of the words dropped in training")
    token_dropout: float = Field(0.15, ge=0, lt=1, description="dropout on word vectors and states")


class WordEncoder(Encoder):
    """Token ids → word vectors → states; a subclass sets `state_size` and implements `read`."""

    settings_type: ClassVar[type[WordEncoderSettings]] = WordEncoderSettings

    def __init__(self, settings: WordEncoderSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        self.embedding = WordEmbedding(settings.embedding_size, inputs)
        self.word_dropout = nn.Dropout1d(settings.word_dropout)  # over (B, l, v): whole words
        self.name_size = self.embedding.size

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
        means = np.zeros((len(names), self.name_size), dtype=np.float32)
        for mean, row in zip(means, names, strict=True):
            if idf[row].any():
                mean[:] = np.average(vectors[row], axis=0, weights=idf[row])
        return to_unit_length(means)

    def place(self, tokens: Tensor, states: Tensor, mask: Tensor, idf: Tensor) -> Tensor:
        """Return (B, v) means of the documents' word vectors, weighted by idf."""
        weights = idf[tokens].unsqueeze(-1)  # (B, l, 1)
        return (weights * self.embedding(tokens)[0]).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-6)

    def word_vectors(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Return the word vectors (B, l, v) themselves."""
        return self.embedding(tokens)[0]
