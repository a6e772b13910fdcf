"""`cnn-lr`: Yu, Hermann, Blunsom & Pulman (2014), "Deep Learning for Answer Sentence Selection".

    order 1:  x = mean_t w_t                                      words w
    order 2:  x = mean_t tanh(T_L w_t + T_R w_{t+1} + b)          bigrams
    s = x_q^T M x_a
    logit = logistic regression over [s; overlap features]

The original trains M first and the regression on its frozen output; here both are trained jointly and share
the regression's bias.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.baselines.answers.pair_network import (
    ANSWER_DEFAULTS,
    FIRST_LOG_ODDS,
    BilinearSimilarity,
    PairNetwork,
    PairSettings,
)
from nlpcapsule.registry import NetworkInputs, System, register


class CNNLRSettings(PairSettings):
    """`cnn-lr`: similarity of mean vectors and logistic regression (Yu et al. 2014)."""

    overlap: ClassVar[bool] = True  # also look at the question words that the answer repeats

    name: Literal["cnn-lr"] = "cnn-lr"
    order: Literal[1, 2] = Field(2, description="1: mean of words (unigrams); 2: of convolved bigrams")


class CNNLR(PairNetwork):
    """Mean vectors of unigrams or bigrams, compared by one matrix."""

    def __init__(self, settings: CNNLRSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        size = self.embedding.size
        self.bigrams = nn.Conv1d(size, size, kernel_size=2) if settings.order == 2 else None
        self.similarity = BilinearSimilarity(size)
        self.regression = nn.Linear(1 + self.overlap_size, 1)
        nn.init.ones_(self.regression.weight)  # similar texts are likely right
        nn.init.constant_(self.regression.bias, FIRST_LOG_ODDS)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked = self._mean_vector(questions)[question_of]  # (A, v)
        similarity = self.similarity(asked, self._mean_vector(answers))  # (A, 1)
        overlap = self.overlap(questions, answers, question_of)
        return self.regression(torch.cat([similarity, overlap], dim=-1)).squeeze(-1).float()

    def _mean_vector(self, tokens: Tensor) -> Tensor:
        """Map (B, l) to (B, v)."""
        states, counted = self.words(tokens)  # (B, l, v), (B, l)
        if self.bigrams is not None:
            following = F.pad(states.transpose(1, 2), (0, 1))  # (B, v, l + 1)
            states = torch.tanh(self.bigrams(following)).transpose(1, 2)  # (B, l, v)
            # The last word starts no bigram, unless it is the only one.
            counted = F.pad(counted[:, 1:], (0, 1))
            counted[:, 0] = True
        weights = counted.unsqueeze(-1) / counted.sum(dim=1).clamp(min=1).view(-1, 1, 1)
        return (states * weights).sum(dim=1)


register(System("cnn-lr", CNNLRSettings, answers=CNNLR, defaults=ANSWER_DEFAULTS))
