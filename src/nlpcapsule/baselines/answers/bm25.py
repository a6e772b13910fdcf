"""`bm25`: Robertson & Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond".

score(q, a) = Σ_{w of q} idf(w) · f_a(w) (k₁ + 1) / (f_a(w) + k₁ (1 − b + b |a| / L))
idf(w)      = log(1 + (N − N_w + ½) / (N_w + ½))             N_w of N answers contain w

f_a(w) is how often w stands in a, |a| the number of tokens in a, L the mean of |a|; a word asked twice counts
twice. Counts come from the training answers, and nothing is learned by gradient. With this idf, which is
never negative, a shared word never counts against an answer. Words the vocabulary lacks are all one word, a
rare one: an unknown name in the question and one in the answer are more often the same than not.

The score itself serves as log-odds: it ranks as it should, but it says nothing about how likely an answer is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.data.word_frequency import document_frequency
from nlpcapsule.registry import System, register


class BM25Settings(SystemSettings):
    """`bm25`: weighted counts of the question's words in the answer (Robertson & Zaragoza 2009)."""

    k1: ClassVar[float] = 1.2  # how much a word's second, third, … occurrence adds
    b: ClassVar[float] = 0.75  # how much long answers are marked down

    name: Literal["bm25"] = "bm25"


class BM25(nn.Module):
    """Scores answers by the question words they repeat; its numbers are counted, none is trained.

    Args:
        settings: k₁ and b.
        vocabulary_size: V, number of tokens.
        padding_id: Id of the padding token.
    """

    def __init__(self, settings: BM25Settings, vocabulary_size: int, padding_id: int = 0) -> None:
        super().__init__()
        self.saturation, self.length_share = settings.k1, settings.b
        self.padding_id = padding_id
        # Parameters, as those tell on which device a network is; without a gradient.
        self.idf = nn.Parameter(torch.zeros(vocabulary_size), requires_grad=False)  # (V,)
        self.mean_length = nn.Parameter(torch.ones(()), requires_grad=False)  # L

    def start_from(self, texts: Iterable[Sequence[int] | np.ndarray]) -> None:
        """Take the words' weights and the mean length from answers, token ids with one array per answer."""
        rows = list(texts)
        total, containing = document_frequency(rows, len(self.idf))
        tokens = sum(map(len, rows))
        idf = np.log1p((total - containing + 0.5) / (containing + 0.5))
        idf[self.padding_id] = 0
        self.idf.copy_(torch.from_numpy(idf))
        self.mean_length.fill_(max(tokens, 1) / max(total, 1))

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,) float32.

        Words are looked up in sorted rows, so memory grows with the tokens and not with pairs of them.
        """
        asked = questions[question_of]  # (A, l)
        rows = answers.sort(dim=1).values  # (A, l')
        count = torch.searchsorted(rows, asked, right=True) - torch.searchsorted(rows, asked)  # f (A, l)
        length = (answers != self.padding_id).sum(dim=1, keepdim=True) / self.mean_length  # (A, 1)
        norm = self.saturation * (1 - self.length_share + self.length_share * length)
        # Where neither the word occurs nor anything normalises it, there is nothing to divide.
        gain = count * (self.saturation + 1) / (count + norm).clamp(min=1e-9)  # (A, l)
        return (self.idf[asked] * gain).sum(dim=1)


register(
    System(
        "bm25",
        BM25Settings,
        answers=lambda settings, inputs: BM25(settings, inputs.vocabulary_size, inputs.padding_id),
        defaults={
            "answers": {"text": {"max_tokens": 500, "min_count": 1}, "training": {"loss": "pointwise"}}
        },
    )
)
