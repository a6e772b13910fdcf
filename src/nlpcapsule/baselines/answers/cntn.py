"""`cntn`: Qiu & Huang (IJCAI 2015), a convolutional neural tensor network.

    v = tanh(W [k-max_t(wide convolution of the words)] + b)       the k largest per filter, in order
    logit = u · tanh(v_q^T M^[1:r] v_a + V [v_q; v_a] + b) + c

One encoder reads questions and answers; it has a single convolution instead of the original's stack.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.baselines.answers.pair_network import (
    ANSWER_DEFAULTS,
    FIRST_LOG_ODDS,
    PairNetwork,
    PairSettings,
)
from nlpcapsule.baselines.answers.severyn_cnn import WideConvolution
from nlpcapsule.registry import NetworkInputs, System, register


class CNTNSettings(PairSettings):
    """`cntn`: convolution, k-max pooling and a tensor layer (Qiu & Huang 2015)."""

    window: ClassVar[int] = 5  # width of the convolution, in tokens
    filters: ClassVar[int] = 50  # filters of the convolution
    top_k: ClassVar[int] = 4  # k: values kept per filter, in the text's order
    text_size: ClassVar[int] = 64  # size of the vector of a question or an answer
    slices: ClassVar[int] = 5  # r: slices of the tensor

    name: Literal["cntn"] = "cntn"


def k_max_pooling(states: Tensor, valid: Tensor, k: int) -> Tensor:
    """Return the k largest states over time, in order of occurrence, padded with zeros.

    Args:
        states: (B, filters, t).
        valid: (B, t) True at the start of each row, False at padding.
        k: Number of states to keep.

    Returns:
        (B, filters, k).
    """
    masked = states.masked_fill(~valid.unsqueeze(1), -torch.inf)
    masked = F.pad(masked, (0, max(k - masked.shape[-1], 0)), value=-torch.inf)
    # Stable, so that equal states are not chosen differently in a longer row.
    places = masked.sort(dim=-1, descending=True, stable=True).indices[..., :k].sort(dim=-1).values
    kept = masked.gather(-1, places)
    return kept.masked_fill(kept == -torch.inf, 0.0)


class TensorLayer(nn.Module):
    """u · tanh(v_q^T M^[1:r] v_a + V [v_q; v_a] + b), with overlap features next to the r slices.

    Args:
        size: d, the size of v_q and v_a.
        slices: r.
        overlap_size: Number of overlap features.
    """

    def __init__(self, size: int, slices: int, overlap_size: int) -> None:
        super().__init__()
        self.tensor = nn.Parameter(torch.randn(slices, size, size))  # d · M
        self.linear = nn.Linear(2 * size, slices)  # V, b
        self.output = nn.Linear(slices + overlap_size, 1)  # u
        nn.init.constant_(self.output.bias, FIRST_LOG_ODDS)

    def forward(self, asked: Tensor, answered: Tensor, overlap: Tensor) -> Tensor:
        """Map (A, d), (A, d) and (A, features) to (A,) float32."""
        # Dividing by d keeps a step of Adam, which moves all d² values of a slice, from saturating the tanh.
        products = torch.einsum("ad,rde->are", asked, self.tensor / asked.shape[-1])  # (A, r, d)
        slices = torch.einsum("are,ae->ar", products, answered)
        related = torch.tanh(slices + self.linear(torch.cat([asked, answered], dim=-1)))  # (A, r)
        return self.output(torch.cat([related, overlap], dim=-1)).squeeze(-1).float()


class CNTN(PairNetwork):
    """Convolution, k-max pooling, tensor layer."""

    def __init__(self, settings: CNTNSettings, inputs: NetworkInputs) -> None:
        super().__init__(settings, inputs)
        self.top_k = settings.top_k
        self.convolution = WideConvolution(self.embedding.size, settings.filters, settings.window)
        self.text = nn.Linear(settings.filters * settings.top_k, settings.text_size)
        self.relation = TensorLayer(settings.text_size, settings.slices, self.overlap_size)

    def forward(self, questions: Tensor, answers: Tensor, question_of: Tensor) -> Tensor:
        """Score candidates: (Q, l), (A, l') and (A,) → (A,)."""
        asked = self._text_vector(questions)[question_of]  # (A, d)
        overlap = self.overlap(questions, answers, question_of)
        return self.relation(asked, self._text_vector(answers), overlap)

    def _text_vector(self, tokens: Tensor) -> Tensor:
        """Map (B, l) to (B, d)."""
        states, valid = self.convolution(*self.words(tokens))
        pooled = k_max_pooling(states, valid, self.top_k)  # (B, filters, k)
        return self.dropout(torch.tanh(self.text(pooled.flatten(start_dim=1))))


register(System("cntn", CNTNSettings, answers=CNTN, defaults=ANSWER_DEFAULTS))
