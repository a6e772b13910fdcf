"""Word vectors, and the convolution over time."""

import numpy as np
import pytest
import torch
from torch import nn

from nlpcapsule.encoders.convolution import ConvolutionEncoder, ConvolutionSettings
from nlpcapsule.encoders.word_encoder import WordEmbedding, embedding_size
from nlpcapsule.registry import NetworkInputs


def convolution(**sizes) -> ConvolutionEncoder:
    settings = ConvolutionSettings(embedding_size=3, token_dropout=0.0, **sizes)
    return ConvolutionEncoder(settings, NetworkInputs(5))


def test_words_start_between_the_bounds_and_padding_at_zero():
    embedding = WordEmbedding(8, NetworkInputs(50, padding_id=3))
    weight = embedding.table.weight
    assert not weight[3].any()
    assert weight.abs().max() <= 0.25
    assert weight.abs().max() > 0.2


@pytest.mark.parametrize("asked_for", [3, 7])
def test_given_vectors_keep_their_size_and_are_trained_on(asked_for):
    vectors = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    embedding = WordEmbedding(asked_for, NetworkInputs(5, vectors=vectors))
    assert embedding.size == embedding_size(asked_for, vectors) == 7
    words, mask = embedding(torch.tensor([[2, 4, 0]]))
    assert words[0, 0].tolist() == vectors[2].tolist()
    assert not words[0, 2].any()
    assert mask.tolist() == [[True, True, False]]
    assert embedding.table.weight.requires_grad


def test_shorter_vectors_are_filled_up_with_numbers_that_are_learned():
    vectors = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    vectors[3] = 9.0  # padding has no vector, whatever the file says
    embedding = WordEmbedding(300, NetworkInputs(5, padding_id=3, vectors=vectors))
    assert embedding.size == embedding_size(300, vectors) == 300
    weight = embedding.table.weight
    real = [0, 1, 2, 4]
    assert weight[real, :7].tolist() == vectors[real].tolist()
    filled = weight[real, 7:]
    assert 0.2 < filled.abs().max() <= 0.25
    assert filled.std(dim=0).all()  # each word's own
    assert not weight[3].any()
    embedding(torch.tensor([[1, 3]]))[0].sum().backward()
    assert weight.grad[1].all()
    assert not weight.grad[3].any()


def test_without_vectors_the_size_is_the_one_asked_for():
    assert WordEmbedding(11, NetworkInputs(5)).size == embedding_size(11, None) == 11


def test_weighting_by_frequency_equals_a_plain_loop():
    torch.manual_seed(0)
    embedding = WordEmbedding(4, NetworkInputs(6, padding_id=2)).double()
    before = embedding.table.weight.tolist()
    counts, smoothing = [5, 1, 0, 40, 0, 2], 0.05
    embedding.weight_by_frequency(np.array(counts), smoothing)
    share = [count / sum(counts) for count in counts]
    mean = [sum(share[word] * before[word][h] for word in range(6)) for h in range(4)]
    for word in range(6):
        weight = smoothing / (smoothing + share[word])
        expected = [weight * (before[word][h] - mean[h]) for h in range(4)]
        if word == 2:
            expected = [0.0] * 4
        assert embedding.table.weight[word].tolist() == pytest.approx(expected)


def test_a_frequent_word_counts_less_and_one_of_frequency_a_half():
    embedding = WordEmbedding(3, NetworkInputs(4))
    with torch.no_grad():
        embedding.table.weight[1:] = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0]])
    embedding.weight_by_frequency(np.array([0, 10, 10, 0]), smoothing=0.5)  # the mean is zero
    assert embedding.table.weight.tolist() == [[0, 0, 0], [0.5, 0, 0], [-0.5, 0, 0], [0, 1, 0]]


def test_padding_stays_zero_in_training_after_the_weighting():
    embedding = WordEmbedding(4, NetworkInputs(5))
    embedding.weight_by_frequency(np.array([0, 3, 1, 1, 1]), 0.1)
    optimizer = torch.optim.AdamW(embedding.parameters(), lr=0.1)
    for _ in range(3):
        embedding(torch.tensor([[1, 2, 0, 0]]))[0].square().sum().backward()
        optimizer.step()
    assert not embedding.table.weight[0].any()


def test_padding_stays_zero_in_training():
    embedding = WordEmbedding(4, NetworkInputs(5))
    optimizer = torch.optim.AdamW(embedding.parameters(), lr=0.1)
    for _ in range(3):
        embedding(torch.tensor([[1, 2, 0, 0]]))[0].square().sum().backward()
        optimizer.step()
    assert not embedding.table.weight[0].any()


@pytest.mark.parametrize("length", [1, 2, 6])
def test_convolution_over_time_equals_a_loop(length):
    torch.manual_seed(0)
    encoder = convolution(windows=(2, 3, 5), filters=2)
    words = torch.randn(1, length, 3)
    with torch.no_grad():
        states = encoder.read(words, torch.ones(1, length, dtype=torch.bool))
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
    encoder = convolution(windows=(3,), filters=4)
    nn.init.constant_(encoder.convolutions[0].bias, 1.0)
    mask = torch.tensor([[True, True, False, False]])
    states = encoder.read(torch.randn(1, 4, 3) * mask.unsqueeze(-1), mask)
    assert not states[0, 2:].any()
    assert states[0, :2].any()
