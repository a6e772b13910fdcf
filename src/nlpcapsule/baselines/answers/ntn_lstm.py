"""`ntn-lstm`: LSTMs under a neural tensor layer, a baseline of Tay et al. (SIGIR 2017).

x = last or mean state of LSTM(words)                 own LSTM for questions and for answers
logit = u · tanh(x_q^T M^[1:r] x_a + V [x_q; x_a] + b) + c

Overlap features, if enabled, are concatenated to the r slices.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import Tensor

from nlpcapsule.baselines.answers.cntn import TensorLayer
from nlpcapsule.baselines.answers.lstm import LSTMTextSettings, LSTMTextVector
from nlpcapsule.baselines.answers.pair_network import ANSWER_DEFAULTS, PairNetwork
from nlpcapsule.registry import NetworkInputs, System, register


class NTNLSTMSettings(LSTMTextSettings):
    """`ntn-lstm`: an LSTM for questions, one for answers, a tensor layer (baseline of Tay et al. 2017)."""

    slices: ClassVar[int] = 5  # r: slices of the tensor

    name: Literal["ntn-lstm"] = "ntn-lstm"


class NTNLSTM(PairNetwork):
    """Two LSTMs and a tensor layer."""

    def __init__(self, settings: NTNLSTMSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        self.of_questions = LSTMTextVector(self.embedding.size, settings)
        self.of_answers = LSTMTextVector(self.embedding.size, settings)
        self.relation = TensorLayer(settings.state_size, settings.slices, self.overlap_size)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked = self.dropout(self.of_questions(*self.words(questions)))[question_of]  # (A, H)
        answered = self.dropout(self.of_answers(*self.words(answers)))  # (A, H)
        return self.relation(asked, answered, self.overlap(questions, answers, question_of))


register(System("ntn-lstm", NTNLSTMSettings, answers=NTNLSTM, defaults=ANSWER_DEFAULTS))
