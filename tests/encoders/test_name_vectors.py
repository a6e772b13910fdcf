"""Vectors of label names."""

import numpy as np
import pytest
import torch
from tiny_transformer import CLS, PAD, SEP, write_transformer

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.transformer import TransformerEncoder, mean_states
from nlpcapsule.encoders.word_embedding import mean_word_vectors, to_unit_length
from nlpcapsule.registry import NetworkInputs


def test_word_vectors_are_weighed_by_idf():
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]], dtype=np.float32)
    words = Ragged.from_rows([[0, 1], [1], [2]])
    means = mean_word_vectors(words, vectors, np.array([3.0, 1.0, 0.0]))
    assert means.tolist() == [[0.75, 0.25], [0, 1], [0, 0]]


def test_what_all_names_share_is_taken_away_before_they_are_scaled():
    scaled = to_unit_length(np.array([[5.0, 3.0], [5.0, -1.0], [0.0, 0.0], [5.0, 1.0]]))
    assert scaled.tolist() == [[0, 1], [0, -1], [0, 0], [0, 0]]


def test_a_transformers_names_do_not_depend_on_their_company(tmp_path):
    encoder = TransformerEncoder(str(write_transformer(tmp_path)), NetworkInputs(10, PAD, length=12))
    rows = [[CLS, 5, 6, 7, SEP], [CLS, 8, SEP]]
    together = mean_states(Ragged.from_rows(rows), encoder)
    alone = np.concatenate([mean_states(Ragged.from_rows([row]), encoder) for row in rows])
    assert together == pytest.approx(alone, abs=1e-5)
    with torch.no_grad():
        states = encoder(torch.tensor(rows[:1]), torch.ones(1, 5, dtype=torch.bool))
    assert together[0] == pytest.approx(states[0].mean(dim=0).numpy(), abs=1e-5)
