"""`bm25`: Robertson & Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond".

score(q, a) = Σ_{w of q} idf(w) · f_a(w) (k₁ + 1) / (f_a(w) + k₁ (1 − b + b |a| / L))
idf(w)      = log(1 + (N − N_w + ½) / (N_w + ½))             N_w of N answers contain w

f_a(w) is the frequency of w in a, |a| the number of tokens in a, L the mean of |a|; a word asked twice counts
twice. Counts come from the training answers, and nothing is learned by gradient. With this idf, which is
never negative, a shared word never counts against an answer. Unknown words count as one rare word: an unknown
name in the question and one in the answer are usually the same.

The score is used as log-odds: it ranks correctly, but is not calibrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.config.settings import SystemSettings
from nlpcapsule.data.word_frequency import document_frequency
from nlpcapsule.registry import NetworkInputs, System, register


class BM25Settings(SystemSettings):
    """`bm25`: weighted counts of the question's words in the answer (Robertson & Zaragoza 2009)."""

    k1: ClassVar[float] = 1.2  # how much further occurrences of a word add
    b: ClassVar[float] = 0.75  # how much long answers are penalised

    name: Literal["bm25"] = "bm25"


class BM25(nn.Module):
    """Score answers by the question words they repeat; weights are counted, not trained."""

    def __init__(self, settings: BM25Settings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.saturation, self.length_share = settings.k1, settings.b
        self.padding_id = inputs.padding_id
        # Parameters without a gradient, since parameters determine a network's device.
        self.idf = nn.Parameter(torch.zeros(inputs.vocabulary_size), requires_grad=False)  # (V,)
        self.mean_length = nn.Parameter(torch.ones(()), requires_grad=False)  # L

    def start_from(self, texts: Iterable[Sequence[int] | np.ndarray]) -> None:
        """Compute the words' weights and the mean length from answers, one array of token ids per answer."""
        rows = list(texts)
        total, containing = document_frequency(rows, len(self.idf))
        tokens = sum(map(len, rows))
        idf = np.log1p((total - containing + 0.5) / (containing + 0.5))
        idf[self.padding_id] = 0
        self.idf.copy_(torch.from_numpy(idf))
        self.mean_length.fill_(max(tokens, 1) / max(total, 1))

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,) float32.

        Words are looked up in sorted rows, so memory is linear in the number of tokens.
        """
        asked = questions[question_of]  # (A, l)
        rows = answers.sort(dim=1).values  # (A, l')
        count = torch.searchsorted(rows, asked, right=True) - torch.searchsorted(rows, asked)  # f (A, l)
        length = (answers != self.padding_id).sum(dim=1, keepdim=True) / self.mean_length  # (A, 1)
        norm = self.saturation * (1 - self.length_share + self.length_share * length)
        # Avoid dividing by zero where the word does not occur and nothing normalises it.
        gain = count * (self.saturation + 1) / (count + norm).clamp(min=1e-9)  # (A, l)
        return (self.idf[asked] * gain).sum(dim=1)


register(
    System(
        "bm25",
        BM25Settings,
        answers=BM25,
        defaults={
            "answers": {"text": {"max_tokens": 500, "min_count": 1}, "training": {"loss": "pointwise"}}
        },
    )
)
