"""The paper's convolution, whose filters slide along the embedding."""

import pytest
import torch

from nlpcapsule.errors import ConfigError
from nlpcapsule.networks import embedding_convolution
from nlpcapsule.networks.embedding_convolution import EmbeddingConvolution
from nlpcapsule.registry import NetworkInputs

INPUTS = NetworkInputs(20, length=5)


@pytest.mark.parametrize("way", ["_by_pair", "_by_number"], ids=["on a CPU", "on a GPU"])
def test_convolution_along_the_embedding_equals_a_loop(monkeypatch, way):
    monkeypatch.setattr(embedding_convolution, "_by_pair", getattr(embedding_convolution, way))
    torch.manual_seed(0)
    convolution = EmbeddingConvolution(INPUTS, size=9, windows=(2, 3, 4), filters=3)
    words = torch.randn(2, 5, 9)
    with torch.no_grad():
        maps = convolution(words)
        for layer, width, size, actual in zip(
            convolution.convolutions, (2, 3, 4), convolution.map_sizes, maps, strict=True
        ):
            assert actual.shape == (2, 3, size)
            for b in range(2):
                for f in range(3):
                    for step in range(size):
                        part = words[b, :, 2 * step : 2 * step + width]
                        expected = (layer.weight[f] * part).sum() + layer.bias[f]
                        torch.testing.assert_close(actual[b, f, step], expected)


def test_filters_that_share_their_start_are_alike_at_all_positions_and_unlike_each_other():
    torch.manual_seed(0)
    shared = EmbeddingConvolution(INPUTS, 9, (2, 4), filters=3, shared_start=True)
    for layer in shared.convolutions:
        assert torch.equal(layer.weight, layer.weight[:, :1].expand_as(layer.weight))
        assert layer.weight[:, 0].std(dim=0).all()
        assert not layer.bias.any()
    apart = EmbeddingConvolution(INPUTS, 9, (2, 4), filters=3)
    for layer in apart.convolutions:
        assert layer.weight.std(dim=1).all()
        assert layer.bias.all()


def test_each_position_is_learned_apart_from_a_shared_start():
    torch.manual_seed(0)
    convolution = EmbeddingConvolution(INPUTS, 9, (4,), filters=3, shared_start=True)
    optimizer = torch.optim.SGD(convolution.parameters(), lr=0.1)
    convolution(torch.randn(2, 5, 9))[0].square().sum().backward()
    optimizer.step()
    assert convolution.convolutions[0].weight.std(dim=1).all()


def test_scaled_features_start_at_the_root_mean_square_asked_for():
    torch.manual_seed(0)
    convolution = EmbeddingConvolution(INPUTS, 9, (2, 4), filters=3, shared_start=True)
    words = 7 * torch.randn(4, 5, 9) + 1
    directions = [layer.weight / layer.weight.norm() for layer in convolution.convolutions]
    for scale in (1.0, 0.3):
        convolution.scale_start(words, *([] if scale == 1 else [scale]))
        for feature in convolution(words):
            assert feature.square().mean().sqrt().item() == pytest.approx(scale, rel=1e-5)
    for layer, direction in zip(convolution.convolutions, directions, strict=True):
        torch.testing.assert_close(layer.weight / layer.weight.norm(), direction)


def test_rows_are_filled_up_or_cut_to_the_fixed_length():
    convolution = EmbeddingConvolution(NetworkInputs(20, 9, length=3), size=8, windows=(2,), filters=1)
    assert convolution.fit(torch.tensor([[1]])).tolist() == [[1, 9, 9]]
    assert convolution.fit(torch.tensor([[1, 2, 3, 4]])).tolist() == [[1, 2, 3]]


def test_a_filter_wider_than_the_word_vectors_is_refused():
    with pytest.raises(ConfigError, match="width 9 does not fit on word vectors of 8 numbers"):
        EmbeddingConvolution(INPUTS, size=8, windows=(2, 9), filters=1)
