"""The parameters that each label has of its own."""

import pytest
import torch
from tiny_networks import LABELS, tiny_network, token_rows

from nlpcapsule.networks.label_table import LabelTable, rows_of


def table_of(count=5, size=3):
    torch.manual_seed(0)
    labels = LabelTable(count)
    labels.add_random("query", size)
    labels.add("bias", torch.arange(float(count)))
    return labels


@pytest.mark.parametrize("outputs", [None, [4, 0], [[1, 2], [4, 4]]])
def test_rows_are_those_of_the_labels_asked_for(outputs):
    labels = table_of()
    ids = None if outputs is None else torch.tensor(outputs)
    chosen = range(5) if outputs is None else outputs
    assert torch.equal(labels.rows_of(ids)["query"], labels.query[torch.tensor(list(chosen))])
    assert labels.rows_of(ids)["bias"].tolist() == torch.tensor(list(chosen)).float().tolist()


def test_only_the_rows_asked_for_have_a_gradient():
    labels = table_of()
    labels.rows_of(torch.tensor([[1, 3], [3, 3]]))["query"].sum().backward()
    assert labels.query.grad.sum(dim=1).tolist() == [0, 3, 0, 9, 0]
    assert labels.bias.grad is None


def test_a_table_knows_its_parts():
    labels = table_of()
    assert [name for name, _ in labels.named_parameters()] == ["query", "bias"]
    assert labels.rows_of(None).keys() == {"query", "bias"}


def test_random_rows_have_a_length_of_about_one():
    lengths = table_of(count=400, size=50).query.norm(dim=1)
    assert lengths.square().mean().item() == pytest.approx(1, abs=0.05)


def test_a_table_with_another_number_of_rows_is_refused():
    with pytest.raises(ValueError, match=r"the table 'slot' needs 5 rows, one per label; got 4"):
        table_of().add("slot", torch.zeros(4, 2))


def test_all_that_a_label_has_of_its_own_is_in_the_table():
    network = tiny_network("label-query")
    rows = {name: len(weights) for name, weights in network.labels.named_parameters()}
    assert rows == dict.fromkeys(("query", "slot", "output", "bias", "whole"), LABELS)
    elsewhere = [
        name
        for name, weights in network.named_parameters()
        if not name.startswith("labels.") and weights.dim() and len(weights) == LABELS
    ]
    assert elsewhere == []


def test_a_routed_label_learns_in_every_part_and_others_in_none():
    network = tiny_network("label-query", routing="dot", capsule_dropout=0.0)
    network(token_rows(9, 12), torch.tensor([2, 5])).logits.square().sum().backward()
    for name, weights in network.labels.named_parameters():
        moved = weights.grad.reshape(LABELS, -1).any(dim=1).nonzero().squeeze(1).tolist()
        assert moved == [2, 5], name


@pytest.mark.parametrize("shape", [(1_000,), (1_000, 64)], ids=str)
def test_threads_add_up_gradients_of_rows_in_the_same_order(shape):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        generator = torch.Generator().manual_seed(1)
        table = torch.randn(shape, generator=generator, requires_grad=True)
        outputs = torch.randint(0, 1_000, (64, 500), generator=generator)
        weights = torch.randn(*outputs.shape, *shape[1:], generator=generator)
        expected = torch.zeros(shape, dtype=torch.float64)
        expected.index_add_(0, outputs.flatten(), weights.flatten(0, 1).double())
        gradients = [
            torch.autograd.grad((rows_of(table, outputs) * weights).sum(), table)[0] for _ in range(20)
        ]
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)
    torch.testing.assert_close(gradients[0].double(), expected, atol=1e-4, rtol=0)
