"""`lstm`: plain LSTMs in one layer or several, a baseline of Tay et al. (SIGIR 2017).

    x = last or mean state of LSTM(words)                 own LSTM for questions and for answers
    logit = u · tanh(W [x_q; x_a; overlap features] + b) + c

Overlap features are added if enabled; the baseline has none.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nlpcapsule.baselines.answers.pair_network import (
    ANSWER_DEFAULTS,
    HiddenLayerScore,
    PairNetwork,
    PairSettings,
)
from nlpcapsule.registry import NetworkInputs, System, register


class LSTMTextSettings(PairSettings):
    """Settings of rankers that read each text with an LSTM."""

    pooling: ClassVar[Literal["last", "mean"]] = "last"  # the text is its last state, or their mean

    state_size: int = Field(128, ge=1, description="size of an LSTM's state")
    layers: int = Field(1, ge=1, description="stacked LSTM layers")


class LSTMSettings(LSTMTextSettings):
    """`lstm`: an LSTM for questions, one for answers, a hidden layer (baseline of Tay et al. 2017)."""

    hidden: ClassVar[int] = 64  # numbers in the hidden layer

    name: Literal["lstm"] = "lstm"


def run_lstm(lstm: nn.LSTM, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Run an LSTM over each text without its padding.

    Args:
        lstm: An LSTM with the batch first.
        words: (B, l, v) word vectors.
        mask: (B, l) True at real tokens.

    Returns:
        States (B, l, H), zero at padding, and the last layer's last states (B, H per direction).
    """
    # A text without words is read as a single zero vector.
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
    states, (last, _) = lstm(packed)
    return pad_packed_sequence(states, batch_first=True, total_length=words.shape[1])[0], last[-1]


class LSTMTextVector(nn.Module):
    """Encode a text as the last state, or the mean of all states.

    Args:
        size: v, numbers per word vector.
        settings: Size, layers and pooling of the LSTM.
    """

    def __init__(self, size: int, settings: LSTMTextSettings) -> None:
        super().__init__()
        self.takes_mean = settings.pooling == "mean"
        between = settings.dropout if settings.layers > 1 else 0.0
        self.lstm = nn.LSTM(size, settings.state_size, settings.layers, batch_first=True, dropout=between)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Map (B, l, v) and (B, l) to (B, H)."""
        states, last = run_lstm(self.lstm, words, mask)
        return states.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1) if self.takes_mean else last


class LSTMRanker(PairNetwork):
    """Two LSTMs and a hidden layer."""

    def __init__(self, settings: LSTMSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        self.of_questions = LSTMTextVector(self.embedding.size, settings)
        self.of_answers = LSTMTextVector(self.embedding.size, settings)
        joined = 2 * settings.state_size + self.overlap_size
        self.score = HiddenLayerScore(joined, settings.hidden, settings.dropout)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked = self.of_questions(*self.words(questions))[question_of]  # (A, H)
        answered = self.of_answers(*self.words(answers))  # (A, H)
        return self.score(asked, answered, self.overlap(questions, answers, question_of))


register(System("lstm", LSTMSettings, answers=LSTMRanker, defaults=ANSWER_DEFAULTS))
