"""`mv-lstm`: Wan et al. (AAAI 2016), matching with multiple positional sentence representations.

    p_t = state of a bidirectional LSTM at word t
    S_ij = p_i^T M p_j  or  cos(p_i, p_j)                 word i of the question, word j of the answer
    logit = u · tanh(W [k largest of S; overlap features] + b) + c

Overlap features are added if enabled; the original has none.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.baselines.answers.lstm import run_lstm
from nlpcapsule.baselines.answers.pair_network import (
    ANSWER_DEFAULTS,
    HiddenLayerScore,
    PairNetwork,
    PairSettings,
)
from nlpcapsule.registry import NetworkInputs, System, register


class MVLSTMSettings(PairSettings):
    """`mv-lstm`: similarities of all positions, the k largest (Wan et al. 2016)."""

    similarity: ClassVar[Literal["bilinear", "cosine"]] = "bilinear"  # similarity of two positions
    top_k: ClassVar[int] = 5  # k: similarities that are kept, largest first
    hidden: ClassVar[int] = 32  # numbers in the hidden layer

    name: Literal["mv-lstm"] = "mv-lstm"
    state_size: int = Field(50, ge=1, description="size of an LSTM's state, per direction")


def largest_values(table: Tensor, valid: Tensor, k: int) -> Tensor:
    """Return the k largest values of each table, largest first, padded with zeros.

    Args:
        table: (A, l, l').
        valid: (A, l, l') False at padding.
        k: Number of values to keep.

    Returns:
        (A, k).
    """
    values = table.masked_fill(~valid, -torch.inf).flatten(start_dim=1)
    values = F.pad(values, (0, max(k - values.shape[1], 0)), value=-torch.inf)
    kept = values.topk(k, dim=1).values
    return kept.masked_fill(kept == -torch.inf, 0.0)


class MVLSTM(PairNetwork):
    """All positions of two texts compared."""

    def __init__(self, settings: MVLSTMSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        self.top_k = settings.top_k
        size = 2 * settings.state_size
        self.lstm = nn.LSTM(self.embedding.size, settings.state_size, batch_first=True, bidirectional=True)
        bilinear = settings.similarity == "bilinear"
        self.transform = nn.Parameter(torch.eye(size)) if bilinear else None  # M
        self.score = HiddenLayerScore(settings.top_k + self.overlap_size, settings.hidden, settings.dropout)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked, asked_mask = self._positions(questions)  # (Q, l, H), (Q, l)
        answered, answered_mask = self._positions(answers)  # (A, l', H), (A, l')
        if self.transform is not None:
            asked = asked @ self.transform
        table = asked[question_of] @ answered.transpose(1, 2)  # (A, l, l')
        valid = asked_mask[question_of].unsqueeze(2) & answered_mask.unsqueeze(1)
        largest = largest_values(table, valid, self.top_k)  # (A, k)
        return self.score(largest, self.overlap(questions, answers, question_of))

    def _positions(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map (B, l) to states (B, l, H), of length 1 for the cosine, and the mask (B, l)."""
        words, mask = self.words(tokens)
        states, _ = run_lstm(self.lstm, words, mask)
        return (states if self.transform is not None else F.normalize(states, dim=-1)), mask


register(System("mv-lstm", MVLSTMSettings, answers=MVLSTM, defaults=ANSWER_DEFAULTS))
