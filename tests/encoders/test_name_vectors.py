"""Vectors of label names."""

import numpy as np
import pytest
import torch
from tiny_transformer import CLS, PAD, SEP, write_transformer

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.encoders.convolution import ConvolutionEncoder, ConvolutionSettings
from nlpcapsule.encoders.encoder import to_unit_length
from nlpcapsule.encoders.windowed_transformer import TransformerSettings, WindowedTransformer
from nlpcapsule.registry import NetworkInputs


def test_word_vectors_are_weighed_by_idf():
    vectors = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [5.0, 5.0]], dtype=np.float32)
    settings = ConvolutionSettings(embedding_size=2, windows=(1,), filters=1)
    encoder = ConvolutionEncoder(settings, NetworkInputs(4, vectors=vectors))
    names = Ragged.from_rows([[1, 2], [2], [3], [0]])
    found = encoder.name_vectors(names, np.array([0.0, 3.0, 1.0, 2.0]))
    # The last name has no weighed word.
    means = np.array([[3.0, 1.0], [0.0, 4.0], [5.0, 5.0], [0.0, 0.0]])
    assert found == pytest.approx(to_unit_length(means))


def test_what_all_names_share_is_taken_away_before_they_are_scaled():
    scaled = to_unit_length(np.array([[5.0, 3.0], [5.0, -1.0], [0.0, 0.0], [5.0, 1.0]]))
    assert scaled.tolist() == [[0, 1], [0, -1], [0, 0], [0, 0]]


def test_a_transformers_names_do_not_depend_on_their_company(tmp_path):
    settings = TransformerSettings(path=str(write_transformer(tmp_path)))
    encoder = WindowedTransformer(settings, NetworkInputs(10, PAD, length=12))
    encoder.eval()
    rows = [[CLS, 5, 6, 7, SEP], [CLS, 8, SEP], [CLS, 9, 5, SEP]]
    with torch.no_grad():
        states = [
            encoder.encoder(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool)) for row in rows
        ]
    alone = np.stack([state[0].mean(dim=0).numpy() for state in states])
    for layer in encoder.train().modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.5
    together = encoder.name_vectors(Ragged.from_rows(rows), np.ones(10))
    assert encoder.training, "dropout is off for the names only"
    assert together == pytest.approx(to_unit_length(alone), abs=1e-5)
