"""Word match features of a question and an answer, which are added to the capsules' cosine.

    Q, A        the words of question and answer with idf(w) > 0
    share       |Q ∩ A| / |Q|
    idf share   Σ_{w ∈ Q ∩ A} idf(w) / Σ_{w ∈ Q} idf(w);  and its numerator alone
    soft share  Σ_{w ∈ Q} idf(w) g(max_{a ∈ A} cos(w, a)) / Σ_{w ∈ Q} idf(w), twice:
                g(x) = max(0, x) and g(x) = max(0, x − 0.4) / 0.6
    centroids   cos of the two texts' mean word vectors, plain and weighted by idf
    length      log(1 + |answer|), and its square
    kind        ⟨K v_q, max over the answer's new words of σ(C x)⟩, v_q: the question's capsule
    log-odds    u · tanh(W [all of these] + b) + c

"How many …?" asks for a number and "Who …?" for a name, which are words that the question does not have: the
kind feature learns which kind of word is asked for and which words are of that kind. A word vector x is a row
of the embedding or, behind a transformer, the state of a token, and the soft share then compares words in
context. Each feature depends on one question and one answer only.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nlpcapsule.encoders.transformer import mean_state
from nlpcapsule.registry import NetworkInputs

KINDS = 8  # kinds of words that can be asked for
_HIDDEN = 16
_FEATURES = 9 + 1  # plus the kind
_ALIKE = 0.4  # minimum cosine of related words
_USUAL_LENGTH = 3.0  # log(1 + words) of a short sentence


class TextReading(NamedTuple):
    """The encoding of B texts."""

    tokens: Tensor  # (B, l) ids, padded at the end
    words: Tensor  # (B, l, v) a vector per token
    capsule: Tensor  # (B, d)

    def of(self, rows: Tensor) -> TextReading:
        """Return the texts of the given rows (A,)."""
        return TextReading(self.tokens[rows], self.words[rows], self.capsule[rows])


class WordMatch(nn.Module):
    """Compute the log-odds that word matches add to the capsules' cosine.

    `inputs.idf` is 0 for tokens that are not words; without it, weights are 0 until a saved state is loaded.
    """

    idf: Tensor  # (V,)
    own_rate = 0.01  # read by the training loop; these few weights need larger steps than an encoder

    def __init__(self, inputs: NetworkInputs, word_size: int, capsule_size: int) -> None:
        super().__init__()
        self.padding_id = inputs.padding_id
        self.register_buffer("idf", word_weights(inputs))
        self.asked_kind = nn.Linear(capsule_size, KINDS)  # K
        self.word_kind = nn.Linear(word_size, KINDS)  # C
        self.score = nn.Sequential(nn.Linear(_FEATURES, _HIDDEN), nn.Tanh(), nn.Linear(_HIDDEN, 1))

    def forward(self, asked: TextReading, answered: TextReading) -> Tensor:
        """Score pairs of A questions and A answers: (A,) float32."""
        features = torch.cat([self.features(asked, answered), self.kind(asked, answered)], dim=1)
        return self.score(features).squeeze(-1).float()

    def features(self, asked: TextReading, answered: TextReading) -> Tensor:
        """Return all features but the kind (A, 9), in the order of the module's docstring."""
        asked_words, answer_words = asked.words.float(), answered.words.float()  # (A, l, v), (A, l', v)
        asked_mask, answer_mask = self._real(asked.tokens), self._real(answered.tokens)
        answer_weights = self.idf[answered.tokens] * answer_mask  # (A, l')
        weights = self.idf[asked.tokens] * asked_mask * is_first(asked.tokens)  # (A, l)
        counted = (weights > 0).float()
        total = weights.sum(dim=1).clamp(min=1e-6)  # (A,)
        repeated = stands_in(answered.tokens, asked.tokens)  # (A, l)
        shared = (weights * repeated).sum(dim=1)  # (A,)

        nearest = largest_cosines(asked_words, answer_words, answer_weights > 0)  # (A, l)
        alike = (nearest - _ALIKE).clamp(min=0) / (1 - _ALIKE)
        plain = F.cosine_similarity(
            mean_state(asked_words, asked_mask), mean_state(answer_words, answer_mask), dim=-1
        )
        weighted = F.cosine_similarity(_sum(asked_words, weights), _sum(answer_words, answer_weights), dim=-1)
        length = answer_mask.sum(dim=1).float().log1p() - _USUAL_LENGTH
        columns = [
            (counted * repeated).sum(dim=1) / counted.sum(dim=1).clamp(min=1),
            shared / total,
            shared / 10,  # all features have about the same scale
            (weights * nearest).sum(dim=1) / total,
            (weights * alike).sum(dim=1) / total,
            plain,
            weighted,
            length,
            length**2,
        ]
        return torch.stack(columns, dim=1)

    def kind(self, asked: TextReading, answered: TextReading) -> Tensor:
        """Return (A, 1): whether a word that is new in the answer is of the kind asked for."""
        is_new = self._real(answered.tokens) & ~stands_in(asked.tokens, answered.tokens)  # (A, l')
        kinds = torch.sigmoid(self.word_kind(answered.words.float()))  # (A, l', KINDS)
        strongest = (kinds * is_new.unsqueeze(-1)).amax(dim=1)  # (A, KINDS)
        return (self.asked_kind(asked.capsule.float()) * strongest).sum(dim=1, keepdim=True)

    def _real(self, tokens: Tensor) -> Tensor:
        return tokens != self.padding_id


def word_weights(inputs: NetworkInputs) -> Tensor:
    """Return the idf of words (V,), or zeros."""
    return torch.zeros(inputs.vocabulary_size) if inputs.idf is None else torch.tensor(inputs.idf).float()


def is_first(tokens: Tensor) -> Tensor:
    """Return a mask (B, l), True where a token occurs for the first time in its row.

    Example:
        >>> is_first(torch.tensor([[5, 7, 5, 5]]))
        tensor([[ True,  True, False, False]])
    """
    same = tokens.unsqueeze(2) == tokens.unsqueeze(1)  # (B, l, l)
    return ~same.tril(diagonal=-1).any(dim=2)


def largest_cosines(words: Tensor, others: Tensor, counted: Tensor) -> Tensor:
    """Return the largest cosine (A, l) of words (A, l, v) with other words (A, l', v) that are counted.

    It is in [0, 1], and 0 where no other word is similar or counted (A, l').
    """
    cosines = F.normalize(words, dim=-1) @ F.normalize(others, dim=-1).transpose(1, 2)  # (A, l, l')
    return cosines.masked_fill(~counted.unsqueeze(1), 0.0).amax(dim=2).clamp(min=0).float()


def _sum(words: Tensor, weights: Tensor) -> Tensor:
    """Sum word vectors (A, l, v) with weights (A, l) to (A, v)."""
    return (words * weights.unsqueeze(-1)).sum(dim=1)


def stands_in(texts: Tensor, words: Tensor) -> Tensor:
    """Return which words (A, l) occur in the texts (A, l') of their rows.

    Words are looked up in sorted rows, so memory is linear in the number of tokens.
    """
    rows = texts.sort(dim=1).values  # (A, l')
    place = torch.searchsorted(rows, words.contiguous()).clamp(max=rows.shape[1] - 1)
    return rows.gather(1, place) == words
