"""`severyn-cnn`: Severyn & Moschitti (SIGIR 2015), ranking short text pairs with convolutions.

    x = max_t ReLU(wide convolution of the words)        own filters for questions and for answers
    sim = x_q^T M x_a
    logit = u · tanh(W [x_q; sim; x_a; overlap features] + b) + c

The convolution is wide: it includes windows that extend beyond the text's ends.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.baselines.answers.pair_network import (
    ANSWER_DEFAULTS,
    BilinearSimilarity,
    HiddenLayerScore,
    PairNetwork,
    PairSettings,
)
from nlpcapsule.registry import NetworkInputs, System, register


class SeverynCNNSettings(PairSettings):
    """`severyn-cnn`: convolution, maximum and bilinear similarity (Severyn & Moschitti 2015)."""

    window: ClassVar[int] = 5  # width of the convolution, in tokens
    filters: ClassVar[int] = 100  # filters for questions, and as many for answers
    hidden: ClassVar[int] = 200  # numbers in the hidden layer
    overlap: ClassVar[bool] = True  # also look at the question words that the answer repeats

    name: Literal["severyn-cnn"] = "severyn-cnn"


class WideConvolution(nn.Module):
    """A convolution that includes windows extending beyond both ends of a text.

    Args:
        size: v, numbers per word vector.
        filters: Filters.
        window: Width, in tokens.
    """

    def __init__(self, size: int, filters: int, window: int) -> None:
        super().__init__()
        self.beyond = window - 1
        self.convolution = nn.Conv1d(size, filters, window)

    def forward(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, l, v) and (B, l) to (B, filters, l + window − 1) and the mask of non-empty windows."""
        wide = F.pad(words.transpose(1, 2), (self.beyond, self.beyond))
        return self.convolution(wide), F.pad(mask, (self.beyond, 0), value=True)


class SeverynCNN(PairNetwork):
    """Two convolutions and their bilinear similarity."""

    def __init__(self, settings: SeverynCNNSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        filters = settings.filters
        self.of_questions = WideConvolution(self.embedding.size, filters, settings.window)
        self.of_answers = WideConvolution(self.embedding.size, filters, settings.window)
        self.similarity = BilinearSimilarity(filters)
        self.score = HiddenLayerScore(2 * filters + 1 + self.overlap_size, settings.hidden, settings.dropout)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked = self._strongest(self.of_questions, questions)[question_of]  # (A, filters)
        answered = self._strongest(self.of_answers, answers)  # (A, filters)
        similarity = self.similarity(asked, answered)  # (A, 1)
        return self.score(asked, similarity, answered, self.overlap(questions, answers, question_of))

    def _strongest(self, convolution: WideConvolution, tokens: Tensor) -> Tensor:
        """Map (B, l) to (B, filters)."""
        states, valid = convolution(*self.words(tokens))
        # States are ≥ 0, so a window of padding, set to 0, is never the maximum.
        return torch.amax(torch.relu(states) * valid.unsqueeze(1), dim=-1)


register(System("severyn-cnn", SeverynCNNSettings, answers=SeverynCNN, defaults=ANSWER_DEFAULTS))
