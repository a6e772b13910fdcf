"""Answer ranking: question and answer go through one encoder to one final capsule each.

    u       = capsules(text), the chain of `paper`, `label-query`, `cap-zhao` (B, m, d)
    v       = routing(u) to a single output                                 (B, d)
    score   = s · cos(v_q, v_a) + b, with learned s and b: log-odds of "right"
              + the word match features (`word_match`), if enabled

With a single output a standard softmax over outputs is inert (every coupling is 1); the leaky one routes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.routing.label_query import route_labels
from nlpcapsule.capsules.votes import PerClassVotes, Votes
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.build import build_encoder
from nlpcapsule.encoders.encoder import EncoderInputs
from nlpcapsule.networks.label_query import (
    CondensedCapsules,
    LabelQuerySettings,
    adaptive_vote_scale,
    agreement_gate,
    agreement_projection,
)
from nlpcapsule.networks.paper import PaperCapsules, PaperSettings
from nlpcapsule.networks.preparation import StartsFromTexts
from nlpcapsule.networks.routing_choice import route
from nlpcapsule.networks.word_match import TextReading, WordMatch
from nlpcapsule.registry import NetworkInputs


class CapsuleTextSettings(Protocol):
    """Settings of all systems that encode a text as one capsule."""

    @property
    def capsule_size(self) -> int:
        """Size of a capsule."""

    @property
    def overlap(self) -> bool:
        """Whether words shared by question and answer are added to the cosine."""


class TextCapsule(nn.Module, ABC):
    """Encode texts: token ids (B, l) → one capsule each (B, d)."""

    @property
    @abstractmethod
    def word_size(self) -> int:
        """Size of the word vectors that `read` returns."""

    @abstractmethod
    def read(self, tokens: Tensor) -> TextReading:
        """Map token ids (B, l) to word vectors, or states, and the capsule."""


class PaperTextCapsule(TextCapsule):
    """Encode a text as one capsule with the paper's chain and routing."""

    def __init__(
        self,
        settings: PaperSettings,
        vocabulary_size: int,
        length: int,
        padding_id: int,
        vectors: np.ndarray | None,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.capsules = PaperCapsules(settings, vocabulary_size, length, padding_id, vectors)
        size = settings.capsule_size
        deviation = 1 / math.sqrt(size)
        self.transform = (
            PairTransforms(1, self.capsules.count, size, deviation)  # W_i
            if settings.votes == "pair"
            else nn.Parameter(torch.randn(1, size, size) * deviation)  # W
        )
        self.em_costs = nn.Parameter(torch.zeros(2)) if settings.routing == "em" else None

    @property
    def word_size(self) -> int:
        """Size of a word vector."""
        return self.capsules.embedding.size

    def read(self, tokens: Tensor) -> TextReading:
        """Map token ids (B, l) to word vectors and the capsule."""
        return TextReading(tokens, self.capsules.embedding(tokens)[0], self(tokens))

    def start_from(self, texts: Ragged) -> None:
        """Fit the initial weights to the training texts; see `PaperCapsules.start_from`."""
        self.capsules.start_from(texts)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to capsules (B, d)."""
        capsules = self.capsules(tokens)  # (B, m, d)
        votes: Votes = (
            self.transform(capsules)
            if isinstance(self.transform, PairTransforms)
            else PerClassVotes(capsules, self.transform)
        )
        routed = route(votes, self.settings, self.em_costs)
        return routed.capsules.squeeze(1)


class QueryTextCapsule(TextCapsule):
    """Encode a text as one capsule with a single learned query over condensed capsules."""

    def __init__(
        self,
        settings: LabelQuerySettings,
        vocabulary_size: int,
        padding_id: int,
        vectors: np.ndarray | None,
        length: int | None = None,
        transformer: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings
        inputs = EncoderInputs(vocabulary_size, padding_id, vectors, length, transformer)
        self.capsules = CondensedCapsules(settings, build_encoder(settings.encoder, inputs))
        size = settings.capsule_size
        self.query = nn.Parameter(torch.randn(1, size) / math.sqrt(size))
        self.agreement = agreement_projection(settings)
        self.vote_scale = adaptive_vote_scale(settings)
        self.gate = agreement_gate(settings)

    @property
    def word_size(self) -> int:
        """Size of a word vector, or of a transformer's state."""
        return self.capsules.encoder.name_size

    def read(self, tokens: Tensor) -> TextReading:
        """Map token ids (B, l) to word vectors, or a transformer's states, and the capsule."""
        encoder = self.capsules.encoder
        states, mask = encoder.token_states(tokens)
        return TextReading(tokens, encoder.word_vectors(tokens, states), self._capsule(states, mask))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to capsules (B, d)."""
        return self._capsule(*self.capsules.encoder.token_states(tokens))

    def _capsule(self, states: Tensor, real: Tensor) -> Tensor:
        """Map states (B, l, H) and a mask (B, l) to capsules (B, d)."""
        capsules, mask = self.capsules.condense(states, real)  # (B, m, d)
        coupling = self.query @ capsules.transpose(1, 2)  # (B, 1, m)
        if mask is not None:
            coupling = coupling.masked_fill(~mask.unsqueeze(1), -torch.inf)
        routed = route_labels(
            capsules,
            coupling,
            agreement=self.settings.agreement,
            iterations=self.settings.most_iterations,
            max_iterations=self.settings.most_iterations,
            gate=self.gate,
            project=self.agreement,
            eps=self.settings.epsilon,
            compared=None if self.vote_scale is None else self.vote_scale(capsules, mask),
        )
        if self.vote_scale is not None:
            self.vote_scale.steer(routed.agreement, self.settings.epsilon)
        return routed.label_capsules.squeeze(1)


class CosineRanker(nn.Module):
    """Score question-answer pairs by the cosine of their text vectors.

    Args:
        text: Token ids (B, l) → one vector per text (B, d).
        scale: Initial value of s.
        offset: Initial value of b.
    """

    def __init__(self, text: nn.Module, scale: float = 5.0, offset: float = -2.0) -> None:
        super().__init__()
        self.text = text
        self.scale = nn.Parameter(torch.tensor(scale))  # s
        self.offset = nn.Parameter(torch.tensor(offset))  # b: most candidates are wrong

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates.

        Args:
            questions: (Q, l) token ids.
            answers: (A, l') token ids.
            question_of: (A,) the row of `questions` each answer belongs to.

        Returns:
            (A,) float32 log-odds.
        """
        asked = self.text(questions)[question_of]  # (A, d)
        answered = self.text(answers)  # (A, d)
        return self.scale * F.cosine_similarity(asked.float(), answered.float(), dim=-1) + self.offset


class AnswerNetwork(CosineRanker):
    """The whole chain for answers.

    Args:
        settings: The system's settings.
        text: Text → one capsule.
        inputs: Sizes and starting values; `idf` if `settings.overlap` is set, see `WordMatch`.
    """

    text: TextCapsule

    def __init__(self, settings: CapsuleTextSettings, text: TextCapsule, inputs: NetworkInputs) -> None:
        super().__init__(text)
        self.match = (
            WordMatch(
                inputs.vocabulary_size, text.word_size, settings.capsule_size, inputs.padding_id, inputs.idf
            )
            if settings.overlap
            else None
        )

    def start_from(self, texts: Ragged) -> None:
        """Fit the initial weights to the training answers, if the text encoder supports it."""
        if isinstance(self.text, StartsFromTexts):
            self.text.start_from(texts)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,) float32 log-odds."""
        if self.match is None:
            return super().forward(questions, answers, question_of)
        asked, answered = self.text.read(questions).of(question_of), self.text.read(answers)
        cosine = F.cosine_similarity(asked.capsule.float(), answered.capsule.float(), dim=-1)
        return self.scale * cosine + self.offset + self.match(asked, answered)


def answer_loss(kind: str, logits: Tensor, labels: Tensor, question_of: Tensor) -> Tensor:
    """Return the loss of a batch of candidates.

    Args:
        kind: "pointwise": cross-entropy of each candidate; "pairwise": log(1 + exp(s⁻ − s⁺)) of each right
            and wrong candidate of one question.
        logits: (A,).
        labels: (A,) 1 right, 0 wrong.
        question_of: (A,).
    """
    if kind == "pointwise":
        return F.binary_cross_entropy_with_logits(logits, labels.float())
    together = question_of.unsqueeze(1) == question_of.unsqueeze(0)  # (A, A)
    pairs = together & (labels.unsqueeze(1) == 1) & (labels.unsqueeze(0) == 0)  # right row, wrong column
    gaps = F.softplus(logits.unsqueeze(0) - logits.unsqueeze(1))  # (A, A)
    return (gaps * pairs).sum() / pairs.sum().clamp(min=1)
