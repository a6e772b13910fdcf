"""Shared parts of the answer rankers: word vectors, word overlap, bilinear similarity, last layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.baselines.answers.word_overlap import FEATURES, overlap_features
from nlpcapsule.config.settings import EMBEDDING_SIZE, SystemSettings
from nlpcapsule.encoders.word_encoder import WordEmbedding
from nlpcapsule.networks.word_match import word_weights
from nlpcapsule.registry import NetworkInputs, Sections

ANSWER_DEFAULTS: Mapping[str, Sections] = {
    "answers": {"text": {"max_tokens": 64}, "training": {"loss": "pointwise", "epochs": 10}}
}


class PairSettings(SystemSettings):
    """Settings that all answer rankers of the comparison share."""

    overlap: ClassVar[bool] = False  # whether question words that the answer repeats are features
    dropout: ClassVar[float] = 0.3  # on word vectors and on the last layer

    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)


FIRST_LOG_ODDS = -2.0  # most candidates are wrong


class PairNetwork(nn.Module):
    """Base class of answer rankers; a pair's score depends only on its own words."""

    idf: Tensor  # (V,)

    def __init__(self, settings: PairSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.embedding = WordEmbedding(settings.embedding_size, inputs)
        self.dropout = nn.Dropout(settings.dropout)
        self.overlap_size = FEATURES if settings.overlap else 0
        self.register_buffer("idf", word_weights(inputs))

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates.

        Args:
            questions: (Q, l) token ids.
            answers: (A, l') token ids.
            question_of: (A,) the row of `questions` each answer belongs to.

        Returns:
            (A,) float32 log-odds.
        """
        raise NotImplementedError

    def words(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, l) to word vectors (B, l, v), with dropout, and the mask (B, l) of real tokens."""
        vectors, mask = self.embedding(tokens)
        return self.dropout(vectors), mask

    def overlap(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Return overlap features (A, 2), or (A, 0) if disabled."""
        if not self.overlap_size:
            return self.idf.new_zeros(len(answers), 0)
        return overlap_features(questions, answers, question_of, self.idf, self.embedding.padding_id)


class BilinearSimilarity(nn.Module):
    """q^T M a, where M starts as the identity, so that it starts as the dot product."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Parameter(torch.eye(size))  # M

    def forward(self, asked: Tensor, answered: Tensor) -> Tensor:
        """Map (A, d) and (A, d) to (A, 1)."""
        return ((asked @ self.transform) * answered).sum(dim=-1, keepdim=True)


class HiddenLayerScore(nn.Module):
    """One tanh layer over the joined features of a pair, then its log-odds."""

    def __init__(self, size: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, hidden)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden, 1)
        nn.init.constant_(self.output.bias, FIRST_LOG_ODDS)

    def forward(self, *features: Tensor) -> Tensor:
        """Score concatenated features (A, ·): (A,) float32."""
        joined = torch.cat(features, dim=-1)
        return self.output(self.dropout(torch.tanh(self.hidden(joined)))).squeeze(-1).float()
