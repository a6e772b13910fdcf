"""A run that was stopped anywhere and resumed ends as if nothing had happened."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from toy_task import (
    BATCHES,
    EVERY_TWO_STEPS,
    PowerCutError,
    ToyTask,
    network_with_sparse_gradients,
    same_weights,
    train_toy,
    without_seconds,
)

from nlpcapsule.training.checkpoint import Checkpoint

VARIANTS = {
    "plain": {},
    "moving average": {"ema_decay": 0.8},
    "accumulated gradients": {"gradient_accumulation_steps": 2},
    "checkpoints that fall between steps": {
        "gradient_accumulation_steps": 3,
        "checkpoint_epochs": EVERY_TWO_STEPS,
    },
    "best epoch is not the last": {"scores": (0.3, 0.6, 0.5), "ema_decay": 0.8},
    "all at once": {
        "ema_decay": 0.9,
        "gradient_accumulation_steps": 2,
        "epochs": 4,
        "scores": (0.1, 0.3, 0.2, 0.9),
    },
    "no checkpoint inside an epoch": {"checkpoint_epochs": 1},
    "a checkpoint every second epoch": {
        "checkpoint_epochs": 2,
        "epochs": 5,
        "scores": (0.1, 0.3, 0.6, 0.2, 0.5),  # the best epoch has weights and no checkpoint
    },
    "no checkpoint at all": {
        "checkpoint_epochs": 0,
        "scores": (0.3, 0.6, 0.5),
        "ema_decay": 0.8,
    },
    "sparse gradients": {"build": network_with_sparse_gradients, "weight_decay": 0.0},
    "sparse gradients, averaged and accumulated": {
        "build": network_with_sparse_gradients,
        "ema_decay": 0.8,
        "gradient_accumulation_steps": 2,
        "scores": (0.3, 0.6, 0.5),
    },
}


def run(folder, variant, cut_before=None):
    options = {"checkpoint_epochs": EVERY_TWO_STEPS} | VARIANTS[variant]
    scores = options.pop("scores", None)
    return train_toy(folder, ToyTask(scores, cut_before), record=True, **options)


@cache
def uninterrupted(variant):
    with tempfile.TemporaryDirectory() as folder:
        return run(Path(folder), variant)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=2, deadline=None)
@given(cuts=st.lists(st.integers(0, 3 * BATCHES - 1), min_size=1, max_size=2))
def test_a_run_cut_short_anywhere_and_resumed_ends_bit_by_bit_the_same(variant, cuts):
    expected_weights, expected_history = uninterrupted(variant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for cut_before in cuts:
            try:
                run(folder, variant, cut_before)
            except PowerCutError:
                continue
        weights, history = run(folder, variant)
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert same_weights(weights, expected_weights)
    assert without_seconds(history) == without_seconds(expected_history)
    assert len(lines) == len(history)


def test_a_resumed_run_does_not_begin_at_the_beginning(tmp_path):
    with pytest.raises(PowerCutError):
        run(tmp_path, "plain", cut_before=BATCHES + 5)  # the last checkpoint is after batch 4 of epoch 2
    task = ToyTask()
    train_toy(tmp_path, task, checkpoint_epochs=EVERY_TWO_STEPS)
    assert task.done == 3 * BATCHES - (BATCHES + 4)


def test_a_run_resumed_from_an_older_checkpoint_does_the_epochs_after_it_again(tmp_path):
    variant = "a checkpoint every second epoch"
    with pytest.raises(PowerCutError):
        run(tmp_path, variant, cut_before=3 * BATCHES + 2)  # in epoch 4; the checkpoint is that of epoch 2
    older = load_file(tmp_path / "checkpoint" / "best.safetensors")
    options = dict(VARIANTS[variant])
    task = ToyTask(options.pop("scores"))
    weights, history = train_toy(tmp_path, task, **options)
    assert task.done == 3 * BATCHES
    # The best epoch is the third; beside the checkpoint of the second lay the best of those two.
    assert not same_weights({name.removeprefix("network."): row for name, row in older.items()}, weights)
    expected_weights, expected_history = uninterrupted(variant)
    assert same_weights(weights, expected_weights)
    assert without_seconds(history) == without_seconds(expected_history)


def test_a_finished_run_is_not_trained_again(tmp_path):
    weights, history = run(tmp_path, "best epoch is not the last")
    task = ToyTask(scores=(0.3, 0.6, 0.5))
    again, same_history = train_toy(tmp_path, task, ema_decay=0.8, checkpoint_epochs=EVERY_TWO_STEPS)
    assert task.done == 0
    assert same_weights(weights, again)
    assert history == same_history


def test_a_run_killed_right_after_its_last_checkpoint_has_every_line(tmp_path, monkeypatch):
    save = Checkpoint.save

    def cut_after_the_last(self, position, *rest):
        save(self, position, *rest)
        if position.finished:
            raise PowerCutError

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", cut_after_the_last)
        with pytest.raises(PowerCutError):
            run(tmp_path, "plain")
    run(tmp_path, "plain")
    assert len((tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()) == 3
