"""Word vectors: of token ids, and their means as vectors of label names."""

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.data.ragged import Ragged

UNKNOWN_RANGE = 0.25  # range of the uniform distribution for words without a given vector


class WordEmbedding(nn.Module):
    """Trainable word vectors (V, v); padding is always the zero vector.

    They start from uniform(-0.25, 0.25), or from given vectors (V, v'). Given vectors that are shorter than
    `size` are extended with random values, which are learned; longer ones keep their size.
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
        """Map token ids (B, l) to word vectors (B, l, v) and a mask (B, l), True at real tokens."""
        return self.table(tokens), tokens != self.padding_id

    @torch.no_grad()
    def weight_by_frequency(self, counts: np.ndarray, smoothing: float) -> None:
        """Centre the vectors and weight them by smooth inverse frequency (Arora et al. 2017).

        x_w ← a / (a + p(w)) · (x_w − Σ_w p(w) x_w). Otherwise a sum over many positions is dominated by what
        all documents share: frequent words, and the common direction of all vectors. `counts` (V,) are the
        words' occurrences in the training part; a word of the relative frequency a gets weight one half.
        """
        share = torch.from_numpy(counts / max(1, counts.sum())).to(self.table.weight)  # p (V,)
        centred = self.table.weight - share @ self.table.weight  # (V, v)
        self.table.weight.copy_(centred * (smoothing / (smoothing + share)).unsqueeze(-1))
        self.table.weight[self.padding_id] = 0


def mean_word_vectors(words: Ragged, vectors: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """Return means (n, v) of rows of words, weighted by idf (V,); zeros where no word has weight."""
    means = np.zeros((len(words), vectors.shape[1]), dtype=np.float32)
    for mean, row in zip(means, words, strict=True):
        if idf[row].any():
            mean[:] = np.average(vectors[row], axis=0, weights=idf[row])
    return means


def to_unit_length(vectors: np.ndarray) -> np.ndarray:
    """Centre rows and scale them to length 1; rows of zeros stay zero."""
    named = (vectors != 0).any(axis=1, keepdims=True)  # (n, 1)
    common = vectors.sum(axis=0) / max(1, named.sum())
    centred = np.where(named, vectors - common, 0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 1e-12)


def embedding_size(size: int, vectors: np.ndarray | None) -> int:
    """Return the word vector size: the larger of `size` and that of given vectors (V, v')."""
    return size if vectors is None else max(size, vectors.shape[1])
