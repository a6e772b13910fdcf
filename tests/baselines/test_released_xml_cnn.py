"""The released code's XML-CNN: the paper's convolution and two linear layers, nothing else."""

from dataclasses import replace

import pytest
import torch

from class_constants import settings_of
from nlpcapsule.baselines.released_xml_cnn import ReleasedXMLCNN, ReleasedXMLCNNSettings
from nlpcapsule.errors import ConfigError
from nlpcapsule.registry import NetworkInputs

VOCABULARY, LABELS, LENGTH = 20, 5, 6
INPUTS = NetworkInputs(VOCABULARY, length=LENGTH, label_count=LABELS)


def network_of(**settings):
    torch.manual_seed(0)
    sizes = {"embedding_size": 10, "windows": (2, 4), "filters": 3, "bottleneck": 7, **settings}
    return ReleasedXMLCNN(settings_of(ReleasedXMLCNNSettings, **sizes), INPUTS).eval()


@pytest.mark.parametrize("relu", [False, True])
def test_the_chain_equals_its_equations(relu):
    network = network_of(relu=relu)
    bend = torch.relu if relu else torch.clone
    row = torch.tensor([4, 9, 2, 7])
    with torch.no_grad():
        words = torch.zeros(LENGTH, 10)
        words[: len(row)] = network.embedding.table.weight[row]
        features = []
        for width, layer in zip((2, 4), network.convolution.convolutions, strict=True):
            for weight, bias in zip(layer.weight, layer.bias, strict=True):  # W^a (l, k)
                for step in range(0, 10 - width + 1, 2):
                    features.append((weight * words[:, step : step + width]).sum() + bias)
        hidden = network.bottleneck.weight @ bend(torch.stack(features)) + network.bottleneck.bias
        expected = network.output.weight @ bend(hidden) + network.output.bias
        torch.testing.assert_close(network(row.unsqueeze(0)).logits[0], expected)


def logits_of_scaled_words(relu):
    """Logits with the word vectors times 0, 1 and 2."""
    network, row = network_of(relu=relu), torch.tensor([[4, 9, 2, 7]])
    start = network.embedding.table.weight.detach().clone()
    rows = []
    with torch.no_grad():
        for factor in (0.0, 1.0, 2.0):
            network.embedding.table.weight.copy_(start * factor)
            rows.append(network(row).logits)
    return rows


def test_as_released_it_is_linear_in_the_word_vectors():
    nothing, once, twice = logits_of_scaled_words(relu=False)
    torch.testing.assert_close(twice - once, once - nothing)


def test_with_relu_it_is_not():
    nothing, once, twice = logits_of_scaled_words(relu=True)
    assert not torch.allclose(twice - once, once - nothing, atol=1e-4)


def test_what_lies_beyond_the_length_is_not_read():
    network = network_of()
    row = torch.randint(1, VOCABULARY, (1, LENGTH + 3))
    assert torch.equal(network(row).logits, network(row[:, :LENGTH]).logits)


def test_there_is_dropout_only_on_demand():
    row = torch.tensor([[4, 9, 2, 7]])
    as_released, dropping = network_of().train(), network_of(dropout=0.5).train()
    assert torch.equal(as_released(row).logits, as_released(row).logits)
    assert not torch.equal(dropping(row).logits, dropping(row).logits)


def test_the_released_sizes():
    """500 tokens of 300 numbers give 14,272 features to a bottleneck of 512."""
    network = ReleasedXMLCNN(ReleasedXMLCNNSettings(embedding_size=300), replace(INPUTS, length=500))
    assert network.bottleneck.weight.shape == (512, 14_272)


def test_a_filter_wider_than_the_word_vectors_is_refused():
    with pytest.raises(ConfigError, match="does not fit on word vectors of 10 numbers"):
        network_of(windows=(2, 11))
