"""`cap-zhao`: Zhao et al. (EMNLP 2018), "Investigating Capsule Networks … for Text Classification".

M            ReLU(W^a ∘ x_{t:t+k-1} + b): n-gram convolution over time           (B, 32, L), L = (l-k)/2+1
p            squash(W^b M_t + b): C primary capsules at each position            (B, L, C, d)
u            routing(W^c_j p_i), i over 3 neighbouring positions                 (B, L-2, C, d)
v_j          routing(W^d_j u_i), i over all u of the document                    (B, n, d)
a_j          ‖v_j‖, the label's probability                                      (B, n)

Variant A is one such chain with k = 3; variant B has three with k = 3, 4, 5 and averages their v_j. Both
routings are Sabour's with a leaky softmax, and W_j is shared among children. The article has a stride of 1,
its released code 2: the default here. The article also scales couplings by the children's lengths; left out,
as in the released code: votes W_j u_i carry these lengths already.

No compression and no partial routing: with l = 500 a chain routes m = 247·16 = 3,952 capsules to every label.
Votes are never computed, but couplings are (B, m, n), 63 MB per document with 3,956 labels. For the gradient
a chain then keeps 134 MB per document, and 9 MB with 103 labels.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nlpcapsule.capsules.routing import Routed, dynamic
from nlpcapsule.capsules.routing.routed import activation
from nlpcapsule.capsules.squash import squash
from nlpcapsule.capsules.votes import PerClassVotes
from nlpcapsule.config.settings import EMBEDDING_SIZE, SystemSettings
from nlpcapsule.encoders.word_encoder import WordEmbedding
from nlpcapsule.errors import ConfigError
from nlpcapsule.networks.answer_ranker import AnswerNetwork, TextCapsule
from nlpcapsule.networks.scored import Scored, log_odds
from nlpcapsule.networks.word_match import TextReading
from nlpcapsule.registry import NetworkInputs, System, register


class CapZhaoSettings(SystemSettings):
    """`cap-zhao`: capsules over n-grams, routed twice (Zhao et al. 2018); routes to all labels."""

    stride: ClassVar[int] = 2  # tokens between n-grams; 1 in the article, 2 in its code
    neighbours: ClassVar[int] = 3  # positions the convolutional capsule layer looks at
    iterations: ClassVar[int] = 3  # of the routing

    name: Literal["cap-zhao"] = "cap-zhao"
    variant: Literal["A", "B"] = Field("B", description="A: 3-grams; B: the mean of 3-, 4- and 5-grams")
    embedding_size: int = Field(100, ge=1, description=EMBEDDING_SIZE)
    filters: int = Field(32, ge=1, description="filters of the n-gram convolution")
    channels: int = Field(16, ge=1, description="capsules per position, in both layers below the labels")
    capsule_size: int = Field(16, ge=2, description="capsule size")
    overlap: bool = Field(False, description="answers: add word match features to the capsules' cosine")

    @property
    def compares_words(self) -> bool:
        """Whether words shared by question and answer are added to the capsules' cosine."""
        return self.overlap


_WINDOWS = {"A": (3,), "B": (3, 4, 5)}


class CapZhao(nn.Module):
    """One or three parallel chains of capsule layers, whose label capsules are averaged."""

    def __init__(self, settings: CapZhaoSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.length, self.padding_id = inputs.length, inputs.padding_id
        windows = _WINDOWS[settings.variant]
        # The widest n-gram must leave enough positions for the second capsule layer.
        least = max(windows) + settings.stride * (settings.neighbours - 1)
        if self.length < least:
            raise ConfigError(
                f"text.max_tokens={self.length} is too short for cap-zhao: expected {least} or more"
            )
        self.embedding = WordEmbedding(settings.embedding_size, inputs)
        self.chains = nn.ModuleList(
            CapsuleChain(settings, self.embedding.size, width, inputs.label_count) for width in windows
        )

    def forward(self, tokens: Tensor, outputs: Tensor | None = None, valid: Tensor | None = None) -> Scored:
        """Score all labels: (B, l) → (B, n). `outputs` and `valid` must be None: it routes to all."""
        routed = self.route_text(tokens)
        agreement = torch.stack([one.agreement for one in routed]).mean(dim=0)  # (B, T)
        return Scored(log_odds(activation(mean_capsules(routed))), routed[0].iterations, agreement)

    def route_text(self, tokens: Tensor) -> list[Routed]:
        """Map (B, l) to the label capsules (B, n, d) of each chain."""
        tokens = tokens[:, : self.length]
        tokens = nn.functional.pad(tokens, (0, self.length - tokens.shape[1]), value=self.padding_id)
        words, _ = self.embedding(tokens)  # (B, l, v)
        return [chain(words) for chain in self.chains]


def mean_capsules(chains: list[Routed]) -> Tensor:
    """Average the capsules (B, n, d) of several chains."""
    return torch.stack([chain.capsules for chain in chains]).mean(dim=0)


class CapsuleChain(nn.Module):
    """Word vectors → n-grams of k words → primary capsules → capsules of neighbourhoods → label capsules."""

    def __init__(self, settings: CapZhaoSettings, size: int, width: int, label_count: int) -> None:
        super().__init__()
        self.settings = settings
        channels, numbers = settings.channels, settings.capsule_size
        self.ngrams = nn.Conv1d(size, settings.filters, width, stride=settings.stride)
        self.primary = nn.Linear(settings.filters, channels * numbers)
        self.neighbourhood = nn.Parameter(_random_transforms(channels, numbers))  # W^c_j
        self.transform = nn.Parameter(_random_transforms(label_count, numbers))  # W^d_j

    def forward(self, words: Tensor) -> Routed:
        """Map (B, l, v) to label capsules (B, n, d)."""
        ngrams = torch.relu(self.ngrams(words.transpose(1, 2))).transpose(1, 2)  # (B, L, filters)
        lifted = self.primary(ngrams).unflatten(-1, (-1, self.settings.capsule_size))
        return self.route(self.neighbourhoods(squash(lifted)), self.transform)

    def neighbourhoods(self, primary: Tensor) -> Tensor:
        """Route the capsules of each K neighbouring positions: (B, L, C, d) → (B, (L-K+1)·C, d)."""
        children = primary.unfold(1, self.settings.neighbours, 1)  # (B, L-K+1, C, d, K)
        children = children.transpose(3, 4).flatten(2, 3)  # (B, L-K+1, C·K, d)
        parents = self.route(children.flatten(0, 1), self.neighbourhood).capsules  # (B·(L-K+1), C, d)
        return parents.unflatten(0, children.shape[:2]).flatten(1, 2)

    def route(self, capsules: Tensor, transforms: Tensor) -> Routed:
        """Apply dynamic routing to u (B, m, d) with W (n, d, d)."""
        votes = PerClassVotes(capsules, transforms)
        return dynamic(votes, iterations=self.settings.iterations, softmax="leaky")


def _random_transforms(count: int, size: int) -> Tensor:
    """Return (count, d, d) random matrices that preserve a vector's length on average."""
    return torch.randn(count, size, size) / math.sqrt(size)


class NgramTextCapsule(TextCapsule):
    """Encode a text as one capsule with Cap-Zhao's capsules over n-grams, routed twice."""

    def __init__(self, settings: CapZhaoSettings, inputs: NetworkInputs) -> None:
        super().__init__()
        self.capsules = CapZhao(settings, replace(inputs, label_count=1))
        self.word_size = self.capsules.embedding.size

    def read(self, tokens: Tensor) -> TextReading:
        """Map (B, l) to word vectors and the capsule."""
        capsule = mean_capsules(self.capsules.route_text(tokens)).squeeze(1)  # (B, d)
        return TextReading(tokens, self.capsules.embedding(tokens)[0], capsule)


register(
    System(
        "cap-zhao",
        CapZhaoSettings,
        labels=CapZhao,
        answers=lambda settings, inputs: AnswerNetwork(settings, NgramTextCapsule(settings, inputs), inputs),
        defaults={
            "labels": {"training": {"weight_decay": 0.0}},
            "answers": {
                "text": {"max_tokens": 64},
                "training": {"loss": "pointwise", "epochs": 10, "weight_decay": 0.0},
            },
        },
    )
)
