"""Parts of a network that learn at a rate of their own."""

import pytest
from toy_task import PowerCutError, ToyTask, copied, same_weights, toy_network

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.training import loop
from nlpcapsule.training.optimizers import build_optimizers
from nlpcapsule.training.progress import TrainingProgress


def network_with_a_slow_part(own_rate=0.0004):
    network = toy_network()
    network[0].own_rate = own_rate
    return network


def train(folder, task, network):
    settings = TrainingSettings(epochs=2, learning_rate=0.05, checkpoint_epochs=0.01)
    loop.train_network(network, task, settings, folder, TrainingProgress(quiet=True))
    return copied(network)


def test_a_part_with_its_own_rate_moves_by_it():
    network = network_with_a_slow_part()
    groups = build_optimizers(network, TrainingSettings(learning_rate=0.05, weight_decay=0.3))[0].param_groups
    assert [group["factor"] for group in groups] == pytest.approx([1, 1, 0.008, 0.008])
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0, 0.3, 0.0]
    slow = {parameter for group in groups[2:] for parameter in group["params"]}
    assert slow == set(network[0].parameters())
    assert {p for group in groups for p in group["params"]} == set(network.parameters())


def test_the_first_step_is_as_long_as_each_parts_rate(tmp_path):
    """Adam's first step moves every weight by its learning rate, whatever the gradient."""
    network = network_with_a_slow_part()
    before = copied(network)
    settings = TrainingSettings(
        epochs=1, learning_rate=0.05, weight_decay=0.0, gradient_accumulation_steps=99
    )
    task = ToyTask()
    task.warmup = 0.0
    loop.train_network(network, task, settings, tmp_path, TrainingProgress(quiet=True))
    moved = {
        name: (tensor - before[name]).abs().max().item() for name, tensor in network.state_dict().items()
    }
    assert moved["0.weight"] == pytest.approx(0.0004, rel=0.01)
    assert moved["3.weight"] == pytest.approx(0.05, rel=0.01)


@pytest.mark.parametrize("batches", [1, 5, 9])
def test_a_run_that_was_cut_short_goes_on_with_both_rates(batches, tmp_path):
    whole = train(tmp_path / "whole", ToyTask(), network_with_a_slow_part())
    with pytest.raises(PowerCutError):
        train(tmp_path / "cut", ToyTask(cut_before=batches), network_with_a_slow_part())
    assert same_weights(train(tmp_path / "cut", ToyTask(), network_with_a_slow_part()), whole)
    assert not same_weights(train(tmp_path / "other", ToyTask(), toy_network()), whole)


def test_frozen_weights_are_left_out():
    network = network_with_a_slow_part()
    network[0].requires_grad_(False)
    groups = build_optimizers(network, TrainingSettings())[0].param_groups
    chosen = [parameter for group in groups for parameter in group["params"]]
    assert all(parameter.requires_grad for parameter in chosen)
    assert len(chosen) == sum(1 for parameter in network.parameters() if parameter.requires_grad)
