"""Word vectors and the two convolutions: over time and along the embedding."""

import numpy as np
import pytest
import torch
from torch import nn

from nlpcapsule.errors import ConfigError
from nlpcapsule.models.convolution_encoder import ConvolutionEncoder
from nlpcapsule.models.embedding_convolution import EmbeddingConvolution
from nlpcapsule.models.word_embedding import WordEmbedding


def test_words_start_between_the_bounds_and_padding_at_zero():
    embedding = WordEmbedding(50, 8, padding_id=3)
    weight = embedding.table.weight
    assert not weight[3].any()
    assert weight.abs().max() <= 0.25
    assert weight.abs().max() > 0.2


def test_given_vectors_decide_the_size_and_are_trained_on():
    vectors = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    embedding = WordEmbedding(5, 300, padding_id=0, vectors=vectors)
    assert embedding.size == 7
    words, mask = embedding(torch.tensor([[2, 4, 0]]))
    assert words[0, 0].tolist() == vectors[2].tolist()
    assert not words[0, 2].any()
    assert mask.tolist() == [[True, True, False]]
    assert embedding.table.weight.requires_grad


def test_padding_stays_zero_in_training():
    embedding = WordEmbedding(5, 4, padding_id=0)
    optimizer = torch.optim.AdamW(embedding.parameters(), lr=0.1)
    for _ in range(3):
        embedding(torch.tensor([[1, 2, 0, 0]]))[0].square().sum().backward()
        optimizer.step()
    assert not embedding.table.weight[0].any()


@pytest.mark.parametrize("length", [1, 2, 6])
def test_convolution_over_time_equals_a_loop(length):
    torch.manual_seed(0)
    encoder = ConvolutionEncoder(size=3, windows=(2, 3, 5), filters=2, dropout=0.0)
    words = torch.randn(1, length, 3)
    with torch.no_grad():
        states = encoder(words, torch.ones(1, length, dtype=torch.bool))
        assert states.shape == (1, length, encoder.state_size)
        for t in range(length):
            expected = []
            for width, layer in zip((2, 3, 5), encoder.convolutions, strict=True):
                total = layer.bias.clone()
                for offset in range(width):
                    place = t + offset - (width - 1) // 2
                    if 0 <= place < length:
                        total += layer.weight[:, :, offset] @ words[0, place]
                expected.append(torch.relu(total))
            torch.testing.assert_close(states[0, t], torch.cat(expected))


def test_states_at_padding_are_zero():
    encoder = ConvolutionEncoder(3, (3,), 4, dropout=0.0)
    nn.init.constant_(encoder.convolutions[0].bias, 1.0)
    mask = torch.tensor([[True, True, False, False]])
    states = encoder(torch.randn(1, 4, 3) * mask.unsqueeze(-1), mask)
    assert not states[0, 2:].any()
    assert states[0, :2].any()


def test_convolution_along_the_embedding_equals_a_loop():
    torch.manual_seed(0)
    convolution = EmbeddingConvolution(length=5, size=9, windows=(2, 4), filters=3, padding_id=0)
    words = torch.randn(2, 5, 9)
    with torch.no_grad():
        maps = convolution(words)
        for layer, width, size, actual in zip(
            convolution.convolutions, (2, 4), convolution.map_sizes, maps, strict=True
        ):
            assert actual.shape == (2, 3, size)
            for b in range(2):
                for f in range(3):
                    for step in range(size):
                        part = words[b, :, 2 * step : 2 * step + width]
                        expected = (layer.weight[f] * part).sum() + layer.bias[f]
                        torch.testing.assert_close(actual[b, f, step], expected)


def test_rows_are_filled_up_or_cut_to_the_fixed_length():
    convolution = EmbeddingConvolution(length=3, size=8, windows=(2,), filters=1, padding_id=9)
    assert convolution.fit(torch.tensor([[1]])).tolist() == [[1, 9, 9]]
    assert convolution.fit(torch.tensor([[1, 2, 3, 4]])).tolist() == [[1, 2, 3]]


def test_a_filter_wider_than_the_word_vectors_is_refused():
    with pytest.raises(ConfigError, match="width 9 does not fit on word vectors of 8 numbers"):
        EmbeddingConvolution(length=3, size=8, windows=(2, 9), filters=1, padding_id=0)
