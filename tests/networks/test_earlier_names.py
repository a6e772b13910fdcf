"""Weights saved before word vectors were part of encoders, and rows of labels part of a table."""

import pytest
import torch
from tiny_networks import tiny_answer_network, tiny_network, token_rows

EARLIER = {
    **{f"labels.{name}": name for name in ("query", "slot", "output", "bias")},
    "labels.whole": "whole.output",
    "document.encoder.embedding.table.weight": "document.embedding.table.weight",
    "text.capsules.encoder.embedding.table.weight": "text.capsules.embedding.table.weight",
    "encoder.embedding.table.weight": "embedding.table.weight",
}


def saved_earlier(network):
    return {EARLIER.get(name, name): tensor for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("model", ["label-query", "kim-cnn", "xml-cnn", "convolution-linear"])
def test_a_label_network_loads_weights_under_their_earlier_names(model):
    trained, opened = tiny_network(model), tiny_network(model, seed=2)
    earlier = saved_earlier(trained)
    assert earlier.keys() != trained.state_dict().keys()
    opened.load_state_dict(earlier)
    rows = token_rows(9, 5)
    with torch.no_grad():
        assert torch.equal(opened(rows).logits, trained(rows).logits)


def test_an_answer_network_does_too():
    trained, opened = tiny_answer_network("label-query"), tiny_answer_network("label-query", seed=2)
    earlier = saved_earlier(trained)
    assert earlier.keys() != trained.state_dict().keys()
    opened.load_state_dict(earlier)
    assert all(
        torch.equal(tensor, opened.state_dict()[name]) for name, tensor in trained.state_dict().items()
    )


def test_weights_that_are_missing_are_missed_all_the_same():
    network = tiny_network("label-query")
    weights = network.state_dict()
    del weights["labels.query"]
    with pytest.raises(RuntimeError, match=r'Missing key.*"labels\.query"'):
        network.load_state_dict(weights)
