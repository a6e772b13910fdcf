"""Answer ranking: question and answer go through one encoder to one final capsule each.

    u       = capsules(text), the chain of `paper`, `label-query`, `cap-zhao` (B, m, d)
    v       = routing(u) to a single output                                 (B, d)
    score   = s · cos(v_q, v_a) + b, with learned s and b: log-odds of "right"
              + the word match features (`word_match`), if enabled

With a single output a standard softmax over outputs is inert (every coupling is 1); the leaky one routes.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.networks.word_match import TextReading, WordMatch
from nlpcapsule.registry import NetworkInputs


class TextCapsule(nn.Module, ABC):
    """Encode texts: token ids (B, l) → one capsule each (B, d)."""

    word_size: int  # of the word vectors that `read` returns

    @abstractmethod
    def read(self, tokens: Tensor) -> TextReading:
        """Map token ids (B, l) to word vectors, or states, and the capsule."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to capsules (B, d)."""
        return self.read(tokens).capsule


class CosineRanker(nn.Module):
    """Score question-answer pairs by the cosine of their text vectors (B, d)."""

    def __init__(self, text: nn.Module, scale: float = 5.0, offset: float = -2.0) -> None:
        super().__init__()
        self.text = text
        self.scale = nn.Parameter(torch.tensor(scale))  # s
        self.offset = nn.Parameter(torch.tensor(offset))  # b: most candidates are wrong

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score questions (Q, l) and answers (A, l'): (A,) float32 log-odds.

        `question_of` (A,) is the row of `questions` each answer belongs to.
        """
        return self.compare(self.text(questions)[question_of], self.text(answers))

    def compare(self, asked: Tensor, answered: Tensor) -> Tensor:
        """Return s · cos + b (A,) of vectors (A, d) of questions and answers."""
        return self.scale * F.cosine_similarity(asked.float(), answered.float(), dim=-1) + self.offset


class AnswerNetwork(CosineRanker):
    """The whole chain for answers: a text capsule and, if the settings say so, the word match features."""

    text: TextCapsule

    def __init__(self, settings: Any, text: TextCapsule, inputs: NetworkInputs) -> None:
        super().__init__(text)
        self.match: WordMatch | None = None
        if settings.compares_words:
            self.match = WordMatch(inputs, text.word_size, settings.capsule_size)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,) float32 log-odds."""
        first, *others = self.parts(questions, answers, question_of).values()
        return first + others[0] if others else first

    def parts(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> dict[str, Tensor]:
        """Return the summands of the log-odds, (A,) each: of the capsules and, if enabled, of the overlap."""
        if self.match is None:
            return {"capsules": super().forward(questions, answers, question_of)}
        asked, answered = self.text.read(questions).of(question_of), self.text.read(answers)
        return {
            "capsules": self.compare(asked.capsule, answered.capsule),
            "overlap": self.match(asked, answered),
        }


def answer_loss(kind: str, logits: Tensor, labels: Tensor, question_of: Tensor) -> Tensor:
    """Return the loss of a batch of candidates (A,), labelled 1 if right and 0 if wrong.

    "pointwise" is the cross-entropy of each candidate, "pairwise" log(1 + exp(s⁻ − s⁺)) of each right and
    wrong candidate of one question.
    """
    if kind == "pointwise":
        return F.binary_cross_entropy_with_logits(logits, labels.float())
    together = question_of.unsqueeze(1) == question_of.unsqueeze(0)  # (A, A)
    pairs = together & (labels.unsqueeze(1) == 1) & (labels.unsqueeze(0) == 0)  # right row, wrong column
    gaps = F.softplus(logits.unsqueeze(0) - logits.unsqueeze(1))  # (A, A)
    return (gaps * pairs).sum() / pairs.sum().clamp(min=1)
