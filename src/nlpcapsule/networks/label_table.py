"""What labels' names bring to a network.

    x         = mean of the document's states, or of its word vectors weighed by idf               (B, E)
    logit_j  += γ cos(A x + a, name_j) / √(1 + n_j)      how like its name the document is          (B, n)

name_j (E) is fixed: what the encoder made of the name before training, less the mean of all names, scaled to
length 1. A, a and γ are learned and the same for all labels; at first A is the identity, and a takes away
what documents have in common. The more training documents n_j a label has, the less its name counts.

A label without examples has nothing of its own: its log-odds are γ' cos(A' x + a', name_j) + β'. What these
are is learned from the labels that have examples, each as if it had none, by a loss of its own that leaves
the rest of the network alone. Labels that have none are rarer: as many more documents would, after Good and
Turing, bring n₁/n₀ of each (n₁: labels with one example, n₀: with none), and β' is lowered by as much.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.transformer import TransformerEncoder, mean_state

_FIRST_GAIN, _FIRST_BIAS = 10.0, -8.0  # a likeness of 0.8 is as good as an even chance
_AT_ONCE = 256  # names a transformer is given at a time


class NameLikeness(nn.Module):
    """γ cos(A x + a, name_j).

    Args:
        name_size: E.
    """

    def __init__(self, name_size: int) -> None:
        super().__init__()
        self.place = nn.Linear(name_size, name_size)  # A, a
        nn.init.eye_(self.place.weight)
        nn.init.zeros_(self.place.bias)
        self.log_gain = nn.Parameter(torch.tensor(math.log(_FIRST_GAIN)))  # log γ: moves by parts

    def forward(self, document: Tensor, names: Tensor) -> Tensor:
        """(B, n) of documents (B, E) and names (n, E) or (B, n, E)."""
        with torch.autocast(document.device.type, enabled=False):  # γ would make much of small errors
            place = nn.functional.normalize(self.place(document.float()), dim=-1)  # (B, E)
            if names.dim() == 2:
                return self.log_gain.exp() * (place @ names.T)
            return self.log_gain.exp() * (names @ place.unsqueeze(-1)).squeeze(-1)


class LabelNameTable(nn.Module):
    """The labels' names, and what is made of them.

    Args:
        label_count: n.
        name_size: E.
    """

    names: Tensor
    has_examples: Tensor
    weight: Tensor
    rarity: Tensor

    def __init__(self, label_count: int, name_size: int) -> None:
        super().__init__()
        self.register_buffer("names", torch.zeros(label_count, name_size))
        self.register_buffer("has_examples", torch.ones(label_count, dtype=torch.bool))
        self.register_buffer("weight", torch.ones(label_count))  # 1 / √(1 + n_j)
        self.register_buffer("rarity", torch.zeros(()))
        self.beside_examples = NameLikeness(name_size)  # A, a, γ
        self.alone = NameLikeness(name_size)  # A', a', γ'
        self.bias = nn.Parameter(torch.tensor(_FIRST_BIAS))  # β'

    def set(self, names: np.ndarray, counts: np.ndarray, middle: Tensor) -> None:
        """Takes the labels' names (n, E) and numbers of examples (n,), and documents' mean place (E,)."""
        for likeness in (self.beside_examples, self.alone):
            likeness.place.bias.copy_(-middle)
        self.names.copy_(torch.from_numpy(names))
        self.has_examples.copy_(torch.from_numpy(counts > 0))
        self.weight.copy_(torch.from_numpy(1 / np.sqrt(1 + counts)))
        self.rarity.fill_(log_rarity(counts))

    def forward(self, own: Tensor, document: Tensor, outputs: Tensor | None) -> tuple[Tensor, Tensor]:
        """Joins names with what labels have learned of their own.

        Args:
            own: (B, n) log-odds without names.
            document: (B, E) x.
            outputs: The labels: all, (n,) or (B, n) ids.

        Returns:
            (B, n) log-odds, and (B, n) those by name alone, as if no label had examples.
        """
        names, weight, has_examples = (
            table if outputs is None else table[outputs]
            for table in (self.names, self.weight, self.has_examples)
        )
        by_name = self.alone(document.detach(), names) + self.bias
        joined = own + weight * self.beside_examples(document, names)
        return torch.where(has_examples, joined, by_name + self.rarity), by_name


def log_rarity(counts: np.ndarray) -> float:
    """How much rarer a label without examples is than the mean label with some, as a logarithm; 0 at most.

    Example:
        >>> round(log_rarity(np.array([4, 1, 1, 0, 0, 0, 0])), 4)  # n1 / n0 = 2 / 4 against 6 / 3
        -1.3863
    """
    none, one, some = (counts == 0).sum(), (counts == 1).sum(), counts[counts > 0]
    if not none or not len(some):
        return 0.0
    return float(min(0.0, np.log(max(one, 0.5) / none / some.mean())))


def mean_word_vectors(words: Ragged, vectors: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """(n, v) of each row's word vectors the mean, weighted by idf; zeros where no word has weight.

    Args:
        words: n rows of word ids.
        vectors: (V, v).
        idf: (V,).
    """
    means = np.zeros((len(words), vectors.shape[1]), dtype=np.float32)
    for mean, row in zip(means, words, strict=True):
        if idf[row].any():
            mean[:] = np.average(vectors[row], axis=0, weights=idf[row])
    return means


@torch.no_grad()
def mean_states(pieces: Ragged, encoder: TransformerEncoder) -> np.ndarray:
    """(n, h) of each row's last states the mean."""
    was_training, device = encoder.training, next(encoder.parameters()).device
    encoder.eval()
    means = []
    for start in range(0, len(pieces), _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, len(pieces)))
        tokens = torch.from_numpy(pieces.padded(rows, encoder.padding_id)).to(device)
        mask = tokens != encoder.padding_id
        means.append(mean_state(encoder(tokens, mask), mask).cpu().numpy())
    encoder.train(was_training)
    return np.concatenate(means)


def to_unit_length(vectors: np.ndarray) -> np.ndarray:
    """Rows less what all have in common, scaled to length 1; rows of zeros stay so."""
    named = (vectors != 0).any(axis=1, keepdims=True)  # (n, 1)
    common = vectors.sum(axis=0) / max(1, named.sum())
    centred = np.where(named, vectors - common, 0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 1e-12)
