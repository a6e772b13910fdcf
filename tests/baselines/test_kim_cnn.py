"""Kim's network: a maximum over time per filter, one linear layer."""

import torch

from class_constants import settings_of
from nlpcapsule.networks.kim_cnn import KimCNN, KimCNNSettings
from nlpcapsule.registry import NetworkInputs

INPUTS = NetworkInputs(20, label_count=5)


def test_the_chain_equals_its_equations():
    torch.manual_seed(0)
    network = KimCNN(settings_of(KimCNNSettings, embedding_size=4, windows=(2, 3), filters=3), INPUTS).eval()
    row = torch.tensor([[4, 9, 2, 7]])
    with torch.no_grad():
        words = network.encoder.embedding.table.weight[row[0]]  # (l, v)
        strongest = []
        for width, layer in zip((2, 3), network.encoder.convolutions, strict=True):
            left = (width - 1) // 2
            padded = torch.cat([torch.zeros(left, 4), words, torch.zeros(width - 1 - left, 4)])
            for f in range(3):
                scores = [(layer.weight[f].T * padded[t : t + width]).sum() + layer.bias[f] for t in range(4)]
                strongest.append(torch.relu(torch.stack(scores)).max())
        expected = network.output.weight @ torch.stack(strongest) + network.output.bias
        torch.testing.assert_close(network(row).logits[0], expected)


def test_dropout_acts_in_training_only():
    network = KimCNN(KimCNNSettings(embedding_size=4, filters=8), INPUTS)
    row = torch.tensor([[4, 9, 2, 7]])
    assert not torch.equal(network(row).logits, network(row).logits)
    network.eval()
    assert torch.equal(network(row).logits, network(row).logits)


def test_labels_start_improbable():
    network = KimCNN(KimCNNSettings(embedding_size=4, filters=8), NetworkInputs(20, label_count=500)).eval()
    assert torch.sigmoid(network(torch.tensor([[4, 9]])).logits).max() < 0.1
