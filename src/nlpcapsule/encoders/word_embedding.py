"""Token ids → word vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

UNKNOWN_RANGE = 0.25  # of the uniform numbers that a word without a given vector starts from


class WordEmbedding(nn.Module):
    """Trainable word vectors; padding is the zero vector and stays so.

    Given vectors that are shorter than `size` are filled up with numbers that start at random and are
    learned; longer ones keep their size.

    Args:
        vocabulary_size: Number of tokens.
        size: v, numbers per word.
        padding_id: The token that fills rows up.
        vectors: (vocabulary_size, v') to start from; None starts from uniform(-0.25, 0.25).
    """

    def __init__(
        self, vocabulary_size: int, size: int, padding_id: int = 0, vectors: np.ndarray | None = None
    ) -> None:
        super().__init__()
        self.size = embedding_size(size, vectors)
        self.padding_id = padding_id
        self.table = nn.Embedding(vocabulary_size, self.size, padding_idx=padding_id)
        with torch.no_grad():
            self.table.weight.uniform_(-UNKNOWN_RANGE, UNKNOWN_RANGE)
            if vectors is not None:
                self.table.weight[:, : vectors.shape[1]] = torch.from_numpy(vectors)
            self.table.weight[padding_id] = 0

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(B, l) → word vectors (B, l, v) and a mask (B, l) that is True on real tokens."""
        return self.table(tokens), tokens != self.padding_id

    @torch.no_grad()
    def weight_by_frequency(self, counts: np.ndarray, smoothing: float) -> None:
        """Centres the vectors and weights them by smooth inverse frequency (Arora et al. 2017).

        x_w ← a / (a + p(w)) · (x_w − Σ_w p(w) x_w). A sum over many positions is otherwise mostly what all
        documents share: frequent words, and the direction that all vectors have in common.

        Args:
            counts: (vocabulary_size,) occurrences in the training part.
            smoothing: a; a word of this relative frequency counts half.
        """
        share = torch.from_numpy(counts / max(1, counts.sum())).to(self.table.weight)  # p (V,)
        centred = self.table.weight - share @ self.table.weight  # (V, v)
        self.table.weight.copy_(centred * (smoothing / (smoothing + share)).unsqueeze(-1))
        self.table.weight[self.padding_id] = 0


def embedding_size(size: int, vectors: np.ndarray | None) -> int:
    """Numbers per word where `size` are asked for and vectors (V, v') may be given: the larger of the two."""
    return size if vectors is None else max(size, vectors.shape[1])
