"""Processes that share a training; here each is played in turn, `tests/slow` starts real ones."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import nn
from toy_task import ToyTask

from nlpcapsule.data import growing_array
from nlpcapsule.training import gradients, shared_work
from nlpcapsule.training.gradients import StepGradients


def process(index: int, count: int) -> SimpleNamespace:
    device = torch.device("cpu")
    return SimpleNamespace(
        process_index=index, num_processes=count, device=device, is_main_process=index == 0
    )


def play(monkeypatch, index: int, count: int) -> None:
    monkeypatch.setattr(shared_work, "this_process", lambda: process(index, count))


def accelerator(index: int, count: int) -> SimpleNamespace:
    own = Accelerator()
    return SimpleNamespace(**vars(process(index, count)), no_sync=own.no_sync, backward=own.backward)


class Still(ToyTask):
    """A task without noise, so that its loss is a mean over rows."""

    def loss(self, network, rows, step_seed):
        return (network(self.inputs[rows]) - self.targets[rows]).square().mean()


def gradient(monkeypatch, count: int, batch: np.ndarray, parts: int = 1) -> tuple[torch.Tensor, float]:
    """The mean over processes of the gradients and of the losses, as processes exchange them."""
    torch.manual_seed(0)
    network = nn.Linear(6, 1)
    losses = []
    for index in range(count):
        play(monkeypatch, index, count)
        added = StepGradients(Still(), network, accelerator(index, count), False, parts)
        losses.append(float(added.add([batch], (1, 0, 0), print)))
    return network.weight.grad / count, sum(losses) / count


@pytest.mark.parametrize("rows", [1, 2, 7, 8])
@pytest.mark.parametrize(("processes", "parts"), [(2, 1), (3, 1), (1, 2), (1, 8), (2, 4)])
def test_documents_weigh_the_same_in_every_process_and_part(monkeypatch, rows, processes, parts):
    batch = np.arange(3, 3 + rows)
    expected, loss = gradient(monkeypatch, 1, batch)
    found, shared_loss = gradient(monkeypatch, processes, batch, parts)
    torch.testing.assert_close(found, expected)
    assert shared_loss == pytest.approx(loss, rel=1e-6)


def test_shares_hold_every_row_once(monkeypatch):
    rows, shares = np.arange(10, 18), []
    for index in range(3):
        play(monkeypatch, index, 3)
        shares.append(shared_work.share_of(rows).tolist())
    assert shares == [[10, 13, 16], [11, 14, 17], [12, 15]]


def test_joined_shares_are_in_the_order_of_the_rows(monkeypatch):
    rows = np.arange(10).reshape(5, 2)
    parts = [rows[0::2], rows[1::2]]

    def padded(own):
        assert own.tolist() == parts[1].tolist()
        return torch.nn.functional.pad(own, (0, 0, 0, 1))

    def gather(own):
        assert len(own) == 3, "shares are padded to one length"
        return torch.cat([torch.from_numpy(parts[0]), own])

    monkeypatch.setattr(shared_work, "pad_across_processes", padded)
    monkeypatch.setattr(shared_work, "gather", gather)
    play(monkeypatch, 1, 2)
    assert np.array_equal(shared_work.joined_shares(parts[1], 5), rows)


@pytest.mark.parametrize("kept", [2**22, 4], ids=["in memory", "in a file"])
def test_the_main_process_sends_its_array_part_by_part(monkeypatch, kept):
    array, parts = np.arange(30, dtype=np.int32).reshape(10, 3), []
    monkeypatch.setattr(shared_work, "_SENT", 100)
    monkeypatch.setattr(growing_array, "MOST_IN_MEMORY", kept)
    monkeypatch.setattr(shared_work, "value_of_main", lambda value: (array.shape, array.dtype.str))

    play(monkeypatch, 0, 2)
    monkeypatch.setattr(shared_work.distributed, "broadcast", lambda sent, source: parts.append(sent.clone()))
    assert shared_work.array_of_main(array) is array
    assert [len(part) for part in parts] == [4, 4, 2]

    play(monkeypatch, 1, 2)
    waiting = iter(parts)
    monkeypatch.setattr(shared_work.distributed, "broadcast", lambda sent, source: sent.copy_(next(waiting)))
    received = shared_work.array_of_main(np.ones((1, 1)))  # what others pass is ignored
    assert received.dtype == np.int32
    assert np.array_equal(received, array)
    assert isinstance(received.base.base, np.memmap) == (kept == 4)


def test_one_process_exchanges_nothing():
    array = np.arange(6).reshape(2, 3)
    assert shared_work.array_of_main(array) is array
    assert shared_work.array_of_main(None) is None
    assert shared_work.joined_shares(array, 2) is array
    assert shared_work.value_of_main("folder") == "folder"
    assert gradients.share_of(array[:, 0]).tolist() == [0, 3]
