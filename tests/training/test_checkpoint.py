"""Checkpoints that cannot be used are refused with a way out."""

import pytest
import torch
from toy_task import PowerCutError, ToyTask, toy_network, train_toy

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.training.checkpoint import Checkpoint, Position


@pytest.fixture
def stopped(tmp_path):
    with pytest.raises(PowerCutError):
        train_toy(tmp_path, ToyTask(cut_before=5), checkpoint_steps=2)
    return tmp_path


def test_a_truncated_checkpoint_is_refused(stopped):
    state = stopped / "checkpoint" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-40])
    with pytest.raises(ModelFolderError, match=r"state\.safetensors is damaged .*without --resume"):
        train_toy(stopped, ToyTask(), checkpoint_steps=2)


def test_a_checkpoint_of_another_network_is_refused(stopped):
    network = torch.nn.Linear(3, 3)
    with pytest.raises(ModelFolderError, match="belongs to another run"):
        Checkpoint(stopped / "checkpoint").restore(network, torch.optim.AdamW(network.parameters()))


def test_a_checkpoint_without_the_moving_average_it_should_have_is_refused(stopped):
    with pytest.raises(ModelFolderError, match="belongs to another run"):
        train_toy(stopped, ToyTask(), checkpoint_steps=2, average=0.5)


def test_a_run_that_never_saved_begins_at_the_beginning(tmp_path):
    network = toy_network()
    position = Checkpoint(tmp_path).restore(network, torch.optim.AdamW(network.parameters()))
    assert position == Position()


def test_saving_again_leaves_two_files_and_no_rubbish(tmp_path):
    train_toy(tmp_path, ToyTask(scores=(0.1, 0.2, 0.3)), checkpoint_steps=1)
    files = sorted(path.name for path in (tmp_path / "checkpoint").iterdir())
    assert files == ["best.safetensors", "state.safetensors"]
