"""XML-CNN: one maximum per filter and part of the document, a bottleneck."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from class_constants import settings_of
from nlpcapsule.baselines.xml_cnn import XMLCNN, XMLCNNSettings, dynamic_max_pool
from nlpcapsule.registry import NetworkInputs


def pooled_in_loops(states, length, pools):
    """Position t of a document of `length` tokens is in part ⌊t·p / length⌋; an empty part gives zero."""
    result = torch.zeros(pools, states.shape[1])
    for t in range(length):
        part = t * pools // length
        result[part] = torch.maximum(result[part], states[t])
    return result


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(1, 9),
    st.integers(0, 3),
    st.integers(0, 1000),
)
def test_dynamic_max_pooling_equals_a_loop(lengths, pools, extra, seed):
    width = max(lengths) + extra
    mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)  # (B, l)
    states = torch.rand(len(lengths), width, 2, generator=torch.Generator().manual_seed(seed))
    states = states * mask.unsqueeze(-1)
    expected = torch.stack(
        [pooled_in_loops(row, length, pools) for row, length in zip(states, lengths, strict=True)]
    )
    assert torch.equal(dynamic_max_pool(states, mask, pools), expected)


def test_parts_divide_a_documents_own_length():
    states = torch.tensor([[[1.0], [2.0], [3.0], [4.0], [0.0], [0.0]]])
    mask = torch.tensor([[True, True, True, True, False, False]])
    assert dynamic_max_pool(states, mask, 2).flatten().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("length", [1, 4])
def test_the_chain_equals_its_equations(length):
    torch.manual_seed(0)
    settings = settings_of(XMLCNNSettings, embedding_size=4, windows=(2, 3), filters=3, pools=2, bottleneck=5)
    network = XMLCNN(settings, NetworkInputs(20, label_count=6)).eval()
    row = torch.randint(1, 20, (1, length))
    with torch.no_grad():
        states = network.encoder.read(
            network.encoder.embedding.table.weight[row], torch.ones_like(row, dtype=torch.bool)
        )
        pooled = pooled_in_loops(states[0], length, 2).flatten()
        hidden = torch.relu(network.bottleneck.weight @ pooled + network.bottleneck.bias)
        expected = network.output.weight @ hidden + network.output.bias
        torch.testing.assert_close(network(row).logits[0], expected)


@pytest.mark.parametrize("setting", ["token_dropout", "dropout"])
def test_each_dropout_acts_in_training_only(setting):
    off = {"token_dropout": 0.0, "dropout": 0.0}
    settings = settings_of(
        XMLCNNSettings, embedding_size=4, filters=8, bottleneck=16, **{**off, setting: 0.5}
    )
    network = XMLCNN(settings, NetworkInputs(20, label_count=6))
    row = torch.tensor([[4, 9, 2, 7]])
    torch.manual_seed(0)
    assert not torch.equal(network(row).logits, network(row).logits)
    network.eval()
    assert torch.equal(network(row).logits, network(row).logits)
