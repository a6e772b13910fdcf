"""The loop: schedule, selection of the best epoch, moving average, determinism, and a loss that blows up."""

import json

import numpy as np
import pytest
import torch
from toy_task import (
    BATCHES,
    EVERY_TWO_STEPS,
    ToyTask,
    copied,
    same_weights,
    toy_network,
    train_toy,
    without_seconds,
)

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.training import loop
from nlpcapsule.training.loop import averaging_decay, learning_rate
from nlpcapsule.training.optimizers import build_optimizers


def test_the_learning_rate_rises_straight_and_falls_as_half_a_cosine():
    rates = np.array([learning_rate(step, 100, 0.5, warmup=0.2) for step in range(100)])
    assert rates.argmax() == 20
    assert rates[20] == 0.5
    rise = np.diff(rates[:21])
    assert np.allclose(rise, rise[0])
    assert rises_then_falls(rates)
    assert rates[60] == pytest.approx(0.25)  # half-way down the cosine
    assert 0 < rates[99] < 0.001
    assert learning_rate(100, 100, 0.5, warmup=0.2) == pytest.approx(0.0)


@pytest.mark.parametrize("total", [1, 2, 3, 7])
@pytest.mark.parametrize("warmup", [0.0, 0.15, 0.9])
def test_short_runs_have_positive_learning_rates_up_to_the_peak(total, warmup):
    rates = [learning_rate(step, total, 0.5, warmup) for step in range(total)]
    assert all(0 < rate <= 0.5 for rate in rates)


def rises_then_falls(rates):
    peak = rates.argmax()
    return (np.diff(rates[: peak + 1]) > 0).all() and (np.diff(rates[peak:]) < 0).all()


def test_the_optimiser_is_given_the_schedule_one_rate_per_step(tmp_path, monkeypatch):
    used = []
    step = torch.optim.AdamW.step

    def noted(self, *args, **options):
        used.append({group["lr"] for group in self.param_groups})
        return step(self, *args, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    train_toy(tmp_path, ToyTask(), gradient_accumulation_steps=2, epochs=2)
    total = 2 * -(-BATCHES // 2)  # the odd batch at an epoch's end makes a step of its own
    assert used == [{learning_rate(step, total, 0.05)} for step in range(total)]


def test_the_best_epochs_weights_are_kept(tmp_path):
    task = ToyTask(scores=(0.2, 0.8, 0.5))
    weights, history = train_toy(tmp_path, task)
    assert same_weights(weights, task.weights_by_epoch[1])
    assert not same_weights(weights, task.weights_by_epoch[2])
    assert [row["score"] for row in history] == [0.2, 0.8, 0.5]


@pytest.mark.parametrize("checkpoint_epochs", [0, 2, 5])
def test_the_best_epochs_weights_are_kept_whether_or_not_it_has_a_checkpoint(tmp_path, checkpoint_epochs):
    task = ToyTask(scores=(0.2, 0.3, 0.8, 0.5))
    weights, _ = train_toy(tmp_path, task, epochs=4, checkpoint_epochs=checkpoint_epochs)
    assert same_weights(weights, task.weights_by_epoch[2])


def test_of_equally_good_epochs_the_first_is_kept(tmp_path):
    task = ToyTask(scores=(0.2, 0.8, 0.8))
    weights, _ = train_toy(tmp_path, task)
    assert same_weights(weights, task.weights_by_epoch[1])


def test_without_a_dev_part_the_last_epochs_weights_are_kept(tmp_path):
    task = ToyTask()
    weights, _ = train_toy(tmp_path, task)
    assert same_weights(weights, task.weights_by_epoch[2])


@pytest.mark.parametrize(
    ("wanted", "epochs", "used"),
    [
        pytest.param(0.8, 3, 0.8, id="as wanted"),
        pytest.param(0.999, 2, 1 - 4 / (2 * BATCHES), id="a quarter of the training at most"),
    ],
)
def test_the_moving_average_of_weights_is_what_is_kept_and_measured(
    tmp_path, monkeypatch, wanted, epochs, used
):
    after_steps = []
    step = torch.optim.AdamW.step

    def noted(self, *args, **options):
        result = step(self, *args, **options)
        after_steps.append(self.param_groups[0]["params"][0].detach().clone())
        return result

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    task = ToyTask()
    weights, _ = train_toy(tmp_path, task, ema_decay=wanted, epochs=epochs)
    expected = after_steps[0]
    for value in after_steps[1:]:
        expected = used * expected + (1 - used) * value
    torch.testing.assert_close(weights["0.weight"], expected)
    assert same_weights(weights, task.weights_by_epoch[-1])


def test_a_training_of_a_few_steps_keeps_its_last_weights_under_an_average():
    assert [averaging_decay(0.999, steps) for steps in (1, 3, 4)] == [0.0, 0.0, 0.0]


def test_same_seed_same_result_other_seed_other_result(tmp_path):
    first, first_history = train_toy(tmp_path / "a", ToyTask())
    second, second_history = train_toy(tmp_path / "b", ToyTask())
    other, _ = train_toy(tmp_path / "c", ToyTask(), seed=2)
    assert same_weights(first, second)
    assert without_seconds(first_history) == without_seconds(second_history)
    assert not same_weights(first, other)


def test_what_ran_before_in_the_process_changes_nothing(tmp_path):
    first, _ = train_toy(tmp_path / "a", ToyTask())
    torch.rand(17)
    np.random.default_rng().normal()
    second, _ = train_toy(tmp_path / "b", ToyTask())
    assert same_weights(first, second)


@pytest.mark.parametrize(("bad_batch", "where"), [(2, "epoch 1"), (BATCHES + 3, "epoch 2")])
def test_a_loss_that_is_not_a_number_is_said_with_two_ways_out(tmp_path, bad_batch, where):
    with pytest.raises(NlpCapsuleError, match=rf"became nan in {where}.*learning_rate.*float32"):
        train_toy(tmp_path, ToyTask(bad_batch=bad_batch))


def test_a_run_that_blew_up_leaves_no_checkpoint_with_broken_weights(tmp_path):
    with pytest.raises(NlpCapsuleError, match="became nan"):
        train_toy(tmp_path, ToyTask(bad_batch=1), checkpoint_epochs=EVERY_TWO_STEPS)
    assert not (tmp_path / "checkpoint" / "state.safetensors").exists()


def test_the_history_has_one_line_per_epoch_on_disk(tmp_path):
    _, history = train_toy(tmp_path, ToyTask(scores=(0.1, 0.2, 0.3)), record=True)
    lines = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == history
    assert [row["epoch"] for row in history] == [1, 2, 3]
    assert {"epochs", "loss", "seconds", "score"} <= history[0].keys()


def test_accumulated_batches_make_the_step_of_one_large_batch(tmp_path):
    """Without dropout and noise, gradients of k batches divided by k are the gradient of their mean."""

    class Still(ToyTask):
        def batches(self, epoch):
            return np.split(np.arange(28), 7)[:4]

        def loss(self, network, rows, step_seed):
            network.eval()
            return (network(self.inputs[rows]) - self.targets[rows]).square().mean()

    class StillAndLarge(Still):
        def batches(self, epoch):
            return np.split(np.arange(16), 2)

    small, _ = train_toy(tmp_path / "a", Still(), gradient_accumulation_steps=2)
    large, _ = train_toy(tmp_path / "b", StillAndLarge())
    for name in small:
        torch.testing.assert_close(small[name], large[name])


def test_the_odd_batch_at_an_epochs_end_counts_in_full(tmp_path):
    class Still(ToyTask):
        def batches(self, epoch):
            return np.split(np.arange(12), 3)

        def loss(self, network, rows, step_seed):
            network.eval()
            return (network(self.inputs[rows]) - self.targets[rows]).square().mean()

    class TwoAndOne(Still):
        def batches(self, epoch):
            return [np.arange(8), np.arange(8, 12)]

    gathered, _ = train_toy(tmp_path / "a", Still(), gradient_accumulation_steps=2)
    plain, _ = train_toy(tmp_path / "b", TwoAndOne())
    for name in gathered:
        torch.testing.assert_close(gathered[name], plain[name])


class ShortOfMemory(ToyTask):
    """Memory runs out for more than some rows at a time, from the given batch on; there is no noise."""

    def __init__(self, most, first=0, **options):
        super().__init__(**options)
        self.most, self.first, self.sizes = most, first, []

    def loss(self, network, rows, step_seed):
        self.sizes.append(len(rows))
        if len(rows) > self.most and len(self.sizes) > self.first:
            raise torch.OutOfMemoryError("CUDA out of memory (simulated)")
        network.eval()
        return (network(self.inputs[rows]) - self.targets[rows]).square().mean()


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("accumulated", [1, 3])
def test_where_memory_runs_out_batches_are_halved_and_the_result_is_the_same(tmp_path, accumulated, first):
    settings = {"gradient_accumulation_steps": accumulated}
    enough, history = train_toy(tmp_path / "a", ShortOfMemory(most=4), **settings)
    task = ShortOfMemory(most=1, first=first)
    short, short_history = train_toy(tmp_path / "b", task, **settings)
    assert task.sizes[-4:] == [1] * 4, "four rows one by one, for the rest of the training"
    for name in enough:
        torch.testing.assert_close(short[name], enough[name])
    losses = [[row["loss"] for row in rows] for rows in (history, short_history)]
    assert losses[1] == pytest.approx(losses[0])


def test_where_memory_does_not_suffice_for_one_row_training_fails(tmp_path):
    with pytest.raises(torch.OutOfMemoryError):
        train_toy(tmp_path, ShortOfMemory(most=0))


def test_fast_float32_is_for_the_training_alone(tmp_path):
    assert not torch.backends.cuda.matmul.allow_tf32
    train_toy(tmp_path, ToyTask(), precision="bf16")
    assert not torch.backends.cuda.matmul.allow_tf32


def test_biases_and_gains_do_not_decay():
    groups = build_optimizers(toy_network(), TrainingSettings(weight_decay=0.3))[0].param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert {parameter.ndim for parameter in groups[0]["params"]} == {2}
    assert {parameter.ndim for parameter in groups[1]["params"]} == {1}


def test_bf16_runs_and_keeps_float32_weights(tmp_path):
    weights, history = train_toy(tmp_path, ToyTask(), precision="bf16")
    exact, _ = train_toy(tmp_path / "exact", ToyTask())
    assert all(tensor.dtype == torch.float32 for tensor in weights.values())
    assert np.isfinite([row["loss"] for row in history]).all()
    assert not same_weights(weights, exact)


def test_the_network_is_left_ready_for_use(tmp_path):
    network = toy_network()
    before = copied(network)
    loop.train_network(
        network, ToyTask(), TrainingSettings(epochs=1), tmp_path, loop.TrainingProgress(quiet=True)
    )
    assert not network.training
    assert not same_weights(before, copied(network))


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_loop_switches_between_training_and_eval_mode(tmp_path, average):
    """Scorers do not: a network is in eval mode on dev, in training mode in every batch, and done in eval."""
    modes = []

    class Noted(ToyTask):
        def loss(self, network, rows, step_seed):
            modes.append(("loss", network.training))
            return super().loss(network, rows, step_seed)

        def dev_metrics(self, network):
            modes.append(("dev", any(module.training for module in network.modules())))
            return super().dev_metrics(network)

    network = toy_network()
    train_toy(tmp_path, Noted(scores=(0.1, 0.2)), build=lambda: network, epochs=2, ema_decay=average)
    assert modes == ([("loss", True)] * BATCHES + [("dev", False)]) * 2
    assert not any(module.training for module in network.modules())
