"""Vectors of label names: means of word vectors or of a transformer's states."""

from __future__ import annotations

import numpy as np
import torch

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.transformer import TransformerEncoder, mean_state

_NAMES_AT_ONCE = 256  # names that a transformer reads at once


def mean_word_vectors(words: Ragged, vectors: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """Return means (n, v) of rows of words, weighted by idf (V,); zeros where no word has weight."""
    means = np.zeros((len(words), vectors.shape[1]), dtype=np.float32)
    for mean, row in zip(means, words, strict=True):
        if idf[row].any():
            mean[:] = np.average(vectors[row], axis=0, weights=idf[row])
    return means


@torch.no_grad()
def mean_states(pieces: Ragged, encoder: TransformerEncoder) -> np.ndarray:
    """Return the mean (n, h) of the last states of each of n rows of word pieces."""
    was_training, device = encoder.training, next(encoder.parameters()).device
    encoder.eval()
    means = []
    for start in range(0, len(pieces), _NAMES_AT_ONCE):
        rows = np.arange(start, min(start + _NAMES_AT_ONCE, len(pieces)))
        tokens = torch.from_numpy(pieces.padded(rows, encoder.padding_id)).to(device)
        mask = tokens != encoder.padding_id
        means.append(mean_state(encoder(tokens, mask), mask).cpu().numpy())
    encoder.train(was_training)
    return np.concatenate(means)


def to_unit_length(vectors: np.ndarray) -> np.ndarray:
    """Centre rows and scale them to length 1; rows of zeros stay zero."""
    named = (vectors != 0).any(axis=1, keepdims=True)  # (n, 1)
    common = vectors.sum(axis=0) / max(1, named.sum())
    centred = np.where(named, vectors - common, 0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 1e-12)
