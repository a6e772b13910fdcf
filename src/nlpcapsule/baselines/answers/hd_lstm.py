"""`hd-lstm`: Tay, Phan, Luu & Hui (SIGIR 2017), the holographic dual LSTM.

    x = last or mean state of LSTM(words)                 own LSTM for questions and for answers
    [x_q ⋆ x_a]_k = Σ_i x_q[i] · x_a[(k + i) mod d]       circular correlation
    sim = x_q^T M x_a  or  cos(x_q, x_a)
    logit = u · tanh(W [x_q ⋆ x_a; sim; overlap features] + b) + c

The correlation relates every value of x_q to every value of x_a without a learned matrix.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from nlpcapsule.baselines.answers.lstm import LSTMTextSettings, LSTMTextVector
from nlpcapsule.baselines.answers.pair_network import (
    ANSWER_DEFAULTS,
    BilinearSimilarity,
    HiddenLayerScore,
    PairNetwork,
)
from nlpcapsule.registry import NetworkInputs, System, register


class HDLSTMSettings(LSTMTextSettings):
    """`hd-lstm`: circular correlation of two LSTMs' states (Tay et al. 2017)."""

    similarity: ClassVar[Literal["bilinear", "cosine"]] = "bilinear"  # joined to the correlation
    hidden: ClassVar[int] = 64  # numbers in the hidden layer
    overlap: ClassVar[bool] = True  # also look at the question words that the answer repeats

    name: Literal["hd-lstm"] = "hd-lstm"


def circular_correlation(asked: Tensor, answered: Tensor) -> Tensor:
    """Return [q ⋆ a]_k = Σ_i q_i · a_{(k + i) mod d}, in d log d steps: F⁻¹(conj(F q) · F a).

    Args:
        asked: (A, d) q.
        answered: (A, d) a.

    Returns:
        (A, d) float32.

    Example:
        >>> circular_correlation(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[4.0, 5.0, 6.0]]))
        tensor([[4., 5., 6.]])
    """
    spectrum = torch.fft.rfft(asked.float()).conj() * torch.fft.rfft(answered.float())
    return torch.fft.irfft(spectrum, n=asked.shape[-1])


class CosineSimilarity(nn.Module):
    """cos(q, a), as a separate column."""

    def forward(self, asked: Tensor, answered: Tensor) -> Tensor:
        """Map (A, d) and (A, d) to (A, 1)."""
        return nn.functional.cosine_similarity(asked, answered, dim=-1).unsqueeze(-1)


class HDLSTM(PairNetwork):
    """Two LSTMs and their circular correlation."""

    def __init__(self, settings: HDLSTMSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        size = settings.state_size
        self.of_questions = LSTMTextVector(self.embedding.size, settings)
        self.of_answers = LSTMTextVector(self.embedding.size, settings)
        self.similarity = (
            BilinearSimilarity(size) if settings.similarity == "bilinear" else CosineSimilarity()
        )
        self.score = HiddenLayerScore(size + 1 + self.overlap_size, settings.hidden, settings.dropout)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked = self.of_questions(*self.words(questions))[question_of]  # (A, H)
        answered = self.of_answers(*self.words(answers))  # (A, H)
        overlap = self.overlap(questions, answers, question_of)
        return self.score(circular_correlation(asked, answered), self.similarity(asked, answered), overlap)


register(System("hd-lstm", HDLSTMSettings, answers=HDLSTM, defaults=ANSWER_DEFAULTS))
