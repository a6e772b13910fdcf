"""Which weights an optimizer has, how gradients are clipped, and what is kept of optimizers."""

import copy

import pytest
import torch
from tiny_runs import tiny_config
from torch import nn
from toy_task import ToyTask, network_with_sparse_gradients, toy_network, train_toy

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.networks.build import build_network
from nlpcapsule.training.optimizers import (
    build_optimizers,
    clip_gradients,
    optimizer_states,
    restore_optimizers,
)

SETTINGS = TrainingSettings(learning_rate=0.05, weight_decay=0.1)
INPUTS = torch.randn(16, 6, generator=torch.Generator().manual_seed(2))


def label_network(model, **settings):
    return build_network(tiny_config(model=model, **settings), 30, label_count=12)


def names_by_optimizer(network):
    """The names of the weights that each kind of optimizer has."""
    names = {parameter: name for name, parameter in network.named_parameters()}
    return {
        type(optimizer).__name__: [names[p] for group in optimizer.param_groups for p in group["params"]]
        for optimizer in build_optimizers(network, SETTINGS)
    }


def test_matrices_per_pair_have_row_adam_and_all_else_adamw():
    network = label_network("paper", routing="em")
    found = names_by_optimizer(network)
    assert found.keys() == {"AdamW", "RowAdam"}
    assert found["RowAdam"] == ["transform.rows"]
    assert sorted(found["AdamW"] + found["RowAdam"]) == sorted(name for name, _ in network.named_parameters())


@pytest.mark.parametrize(
    "build",
    [
        lambda: label_network("paper", votes="class"),
        lambda: label_network("official"),
        lambda: label_network("label-query"),
        lambda: build_network(tiny_config("answers", "paper"), 30),  # one output: all rows are read
    ],
    ids=["paper, a matrix per label", "official", "label-query", "paper on answers"],
)
def test_networks_with_dense_gradients_have_adamw_alone(build):
    network = build()
    found = names_by_optimizer(network)
    assert found.keys() == {"AdamW"}
    assert sorted(found["AdamW"]) == sorted(name for name, _ in network.named_parameters())


def test_rows_are_updated_at_the_learning_rate_of_all():
    rows = build_optimizers(network_with_sparse_gradients(), SETTINGS)[1].param_groups[0]
    assert (rows["lr"], rows["factor"]) == (0.05, 1.0)


def with_gradients(network):
    """The network with the gradients of two passes; several inputs read the same row."""
    torch.manual_seed(0)
    for _ in range(2):
        (3 * network(INPUTS)).square().sum().backward()
    return network


def densified(network):
    """A copy whose gradients hold all rows."""
    plain = copy.deepcopy(network)
    for parameter, twin in zip(network.parameters(), plain.parameters(), strict=True):
        twin.grad = parameter.grad.to_dense().clone()
    return plain


@pytest.mark.parametrize("build", [network_with_sparse_gradients, toy_network])
@pytest.mark.parametrize("share", [0.01, 0.9, 1.5])
def test_clipping_equals_that_of_torch_on_all_rows(build, share):
    network = with_gradients(build())
    plain = densified(network)
    norm = torch.linalg.vector_norm(torch.cat([p.grad.flatten() for p in plain.parameters()])).item()
    clip_gradients(network.parameters(), share * norm)
    nn.utils.clip_grad_norm_(plain.parameters(), share * norm)
    for parameter, twin in zip(network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad.to_dense(), twin.grad)


def test_a_row_that_is_read_twice_counts_with_the_sum_of_its_gradients():
    """Or sums that cancel would be clipped, and those that add up would not."""
    table = nn.Embedding(3, 1, sparse=True)
    table(torch.tensor([1, 1, 2])).backward(torch.tensor([[3.0], [-3.0], [0.5]]))
    clip_gradients(table.parameters(), 1.0)
    assert table.weight.grad.to_dense().flatten().tolist() == [0.0, 0.0, 0.5]


def test_weights_without_a_gradient_are_left_alone():
    network = with_gradients(network_with_sparse_gradients())
    network.lift.bias.grad = None
    clip_gradients(network.parameters(), 1e-3)
    assert network.lift.bias.grad is None


def test_a_row_that_is_never_read_is_never_moved(tmp_path):
    before = network_with_sparse_gradients().state_dict()["transform.rows"]
    weights, _ = train_toy(
        tmp_path, ToyTask(), build=network_with_sparse_gradients, weight_decay=0.5, ema_decay=0.0
    )
    moved = (weights["transform.rows"] != before).any(dim=1).tolist()
    assert moved == [True] * 8 + [False]


def stepped(network, optimizers):
    torch.manual_seed(0)
    network(INPUTS).square().sum().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def test_optimizers_that_are_put_back_go_on_as_they_would_have():
    network = network_with_sparse_gradients()
    optimizers = build_optimizers(network, SETTINGS)
    for _ in range(3):
        stepped(network, optimizers)
    kept = {name: tensor.clone() for name, tensor in optimizer_states(optimizers).items()}  # as on disk
    assert {key.split(".")[0] for key in kept} == {"0", "1"}
    twin = copy.deepcopy(network)
    others = build_optimizers(twin, SETTINGS)
    restore_optimizers(others, kept)
    for _ in range(2):
        stepped(network, optimizers)
        stepped(twin, others)
    weights = twin.state_dict()
    assert all(torch.equal(tensor, weights[name]) for name, tensor in network.state_dict().items())
