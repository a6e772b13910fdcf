"""Token ids → word vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class WordEmbedding(nn.Module):
    """Trainable word vectors; padding is the zero vector and stays so.

    Args:
        vocabulary_size: Number of tokens.
        size: v, numbers per word.
        padding_id: The token that fills rows up.
        vectors: (vocabulary_size, v) to start from; None starts from uniform(-0.25, 0.25).
    """

    def __init__(
        self, vocabulary_size: int, size: int, padding_id: int = 0, vectors: np.ndarray | None = None
    ) -> None:
        super().__init__()
        self.size = size if vectors is None else vectors.shape[1]
        self.padding_id = padding_id
        self.table = nn.Embedding(vocabulary_size, self.size, padding_idx=padding_id)
        with torch.no_grad():
            if vectors is None:
                self.table.weight.uniform_(-0.25, 0.25)
            else:
                self.table.weight.copy_(torch.from_numpy(vectors))
            self.table.weight[padding_id] = 0

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(B, l) → word vectors (B, l, v) and a mask (B, l) that is True on real tokens."""
        return self.table(tokens), tokens != self.padding_id
