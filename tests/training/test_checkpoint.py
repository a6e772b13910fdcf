"""Checkpoints that cannot be used are refused with a way out."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from toy_task import BATCHES, EVERY_TWO_STEPS, PowerCutError, ToyTask, toy_network, train_toy

from nlpcapsule.errors import ModelFolderError, NlpCapsuleError
from nlpcapsule.lexical.arrays import array_to_text, load_arrays, save_arrays, text_to_array
from nlpcapsule.training.checkpoint import Checkpoint, Position

SCORES = (0.3, 0.2, 0.1)
WAY_OUT = "start again without --resume: .* --output, or .*delet"


def truncate(path):
    path.write_bytes(path.read_bytes()[:-40])


def empty(path):
    path.write_bytes(b"")


@pytest.fixture
def stopped(tmp_path):
    with pytest.raises(PowerCutError):
        train_toy(tmp_path, ToyTask(cut_before=5), checkpoint_epochs=EVERY_TWO_STEPS)
    return tmp_path


def test_a_truncated_checkpoint_is_refused(stopped):
    truncate(stopped / "checkpoint" / "state.safetensors")
    with pytest.raises(ModelFolderError, match=rf"state\.safetensors is damaged .*{WAY_OUT}"):
        train_toy(stopped, ToyTask(), checkpoint_epochs=EVERY_TWO_STEPS)


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink])
def test_damaged_best_weights_are_refused_before_training_goes_on(tmp_path, damage):
    with pytest.raises(PowerCutError):
        train_toy(tmp_path, ToyTask(scores=SCORES, cut_before=BATCHES + 5), checkpoint_epochs=EVERY_TWO_STEPS)
    damage(tmp_path / "checkpoint" / "best.safetensors")
    task = ToyTask(scores=SCORES)
    with pytest.raises(ModelFolderError, match=rf"best\.safetensors is (damaged|missing).*{WAY_OUT}"):
        train_toy(tmp_path, task, checkpoint_epochs=EVERY_TWO_STEPS)
    assert task.done == 0


def test_best_weights_damaged_while_training_goes_on_are_refused(tmp_path):
    network = toy_network()
    checkpoint = Checkpoint(tmp_path)
    checkpoint.keep_best(network)
    checkpoint.save(Position(), network, [])
    truncate(checkpoint.best)
    with pytest.raises(ModelFolderError, match=rf"best\.safetensors is damaged .*{WAY_OUT}"):
        checkpoint.restore_best(network)


def test_a_checkpoint_of_another_network_is_refused(stopped):
    network = torch.nn.Linear(3, 3)
    with pytest.raises(ModelFolderError, match="belongs to another run"):
        Checkpoint(stopped / "checkpoint").restore(network, [torch.optim.AdamW(network.parameters())])


def test_a_checkpoint_without_the_moving_average_it_should_have_is_refused(stopped):
    with pytest.raises(ModelFolderError, match="belongs to another run"):
        train_toy(stopped, ToyTask(), checkpoint_epochs=EVERY_TWO_STEPS, ema_decay=0.5)


def test_a_run_that_never_saved_begins_at_the_beginning(tmp_path):
    network = toy_network()
    position = Checkpoint(tmp_path).restore(network, [torch.optim.AdamW(network.parameters())])
    assert position == Position()


def test_saving_again_leaves_two_files_and_no_rubbish(tmp_path):
    train_toy(tmp_path, ToyTask(scores=(0.1, 0.2, 0.3)), checkpoint_epochs=0.01)
    files = sorted(path.name for path in (tmp_path / "checkpoint").iterdir())
    assert files == ["best.safetensors", "state.safetensors"]


@pytest.mark.parametrize(("every", "saved"), [(0, []), (1, [1, 2, 3, 4, 5]), (2, [2, 4]), (7, [])])
def test_a_checkpoint_is_written_after_every_so_many_epochs(tmp_path, monkeypatch, every, saved):
    save, epochs = Checkpoint.save, []

    def noted(self, position, *rest):
        epochs.append(position.epoch)
        save(self, position, *rest)

    monkeypatch.setattr(Checkpoint, "save", noted)
    scores = (0.1, 0.2, 0.3, 0.2, 0.1)
    _, history = train_toy(tmp_path, ToyTask(scores=scores), epochs=5, checkpoint_epochs=every, record=True)
    assert epochs == saved
    written = {path.name for path in tmp_path.glob("checkpoint/*")}
    assert written == ({"best.safetensors", "state.safetensors"} if saved else set())
    assert len(history) == len((tmp_path / "metrics.jsonl").read_text("utf-8").splitlines()) == 5


def test_steps_are_kept_without_a_checkpoint_per_epoch(tmp_path):
    train_toy(tmp_path, ToyTask(), checkpoint_epochs=EVERY_TWO_STEPS, epochs=1)
    assert (tmp_path / "checkpoint" / "state.safetensors").exists()


@pytest.mark.parametrize("file", ["state.safetensors", "best.safetensors"])
def test_a_full_disk_is_reported_and_leaves_the_older_checkpoint(tmp_path, full_disk, file):
    network = torch.nn.Linear(100, 100)
    checkpoint = Checkpoint(tmp_path)

    def save():
        if file == "best.safetensors":
            checkpoint.keep_best(network)
        checkpoint.save(Position(), network, [torch.optim.AdamW(network.parameters())])

    save()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(NlpCapsuleError, match=f"{file} cannot be written: File too large"), full_disk():
        save()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def rewrite(path, change_tensors=lambda tensors: None, **changed):
    """Changes tensors, or values of the position, and renews the checksum."""
    arrays = load_arrays(path, needs_checksum=True)
    position = json.loads(array_to_text(arrays.pop("position"), "position"))
    change_tensors(arrays)
    save_arrays(path, **arrays, position=text_to_array(json.dumps(position | changed)))


@pytest.mark.parametrize(
    "changed",
    [
        {"epoch": "1"},
        {"epoch": -1},
        {"epoch": True},
        {"batch": 1.5},
        {"step": 10**30},
        {"best_epoch": 7},
        {"best_score": "high"},
        {"loss_sum": None},
        {"loss_sum": float("nan")},
        {"history": {}},
        {"history": [7]},
        {"finished": "no"},
        {"colour": "red"},
    ],
)
def test_a_position_that_cannot_be_is_refused(stopped, changed):
    rewrite(stopped / "checkpoint" / "state.safetensors", **changed)
    with pytest.raises(ModelFolderError, match=rf"state\.safetensors is damaged .*{WAY_OUT}"):
        train_toy(stopped, ToyTask(), checkpoint_epochs=EVERY_TWO_STEPS)


@pytest.mark.parametrize("place", [0, 8, 40, -1])
def test_a_single_changed_bit_of_a_checkpoint_is_noticed(stopped, place):
    path = stopped / "checkpoint" / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFolderError, match=rf"state\.safetensors is damaged .*{WAY_OUT}"):
        train_toy(stopped, ToyTask(), checkpoint_epochs=EVERY_TWO_STEPS)


def test_an_optimizer_state_of_other_shapes_is_refused_before_training_goes_on(stopped):
    def widen(tensors):
        name = next(name for name in tensors if name.endswith("exp_avg"))
        tensors[name] = np.zeros((3, *tensors[name].shape), dtype=np.float32)

    rewrite(stopped / "checkpoint" / "state.safetensors", widen)
    task = ToyTask()
    with pytest.raises(ModelFolderError, match=r"exp_avg of weight \d+ has the shape"):
        train_toy(stopped, task, checkpoint_epochs=EVERY_TWO_STEPS)
    assert task.done == 0
