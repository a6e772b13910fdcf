"""Tables updated by row: as dense ones where rows were read, untouched elsewhere, and averaged when due."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_runs import some_documents, tiny_config
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from toy_task import ToyTask, network_with_sparse_gradients, same_weights, train_toy

from nlpcapsule.fused.row_adam import RowAdam
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.label_table import LabelTable
from nlpcapsule.training import row_updates
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.optimizers import build_optimizers, clip_gradients
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.row_updates import MovingAverage, choose_row_updates, exchange_rows, row_tables

TABLES = {"labels.query", "labels.slot", "labels.output", "labels.bias", "labels.whole"}


def label_tables(sparse: bool) -> LabelTable:
    torch.manual_seed(0)
    labels = LabelTable(6)
    labels.sparse = sparse
    labels.add_random("query", 4)
    labels.add("bias", torch.zeros(6))
    return labels


@pytest.mark.parametrize("ids", [torch.tensor([4, 1]), torch.tensor([[4, 1], [4, 0]]), None])
@pytest.mark.parametrize("name", ["query", "bias"])
def test_sparse_gradients_are_those_of_dense_tables(name, ids):
    found = {}
    for sparse in (False, True):
        labels = label_tables(sparse)
        rows = labels.rows_of(ids)[name]
        (rows * torch.arange(rows.numel()).reshape(rows.shape)).sum().backward()
        found[sparse] = getattr(labels, name).grad
    assert found[True].is_sparse
    assert torch.equal(found[True].to_dense(), found[False])


@pytest.mark.parametrize(("negatives", "expected"), [("all", set()), ("hard", TABLES), ("uniform", TABLES)])
def test_only_large_tables_of_partial_routing_are_updated_by_row(monkeypatch, negatives, expected):
    config = tiny_config(negatives=negatives)
    network = build_network(config, 30, label_count=12)
    choose_row_updates(network, config.training)
    assert row_tables(network) == {}, "twelve labels are few"
    monkeypatch.setattr(row_updates, "MANY_LABELS", 11)
    choose_row_updates(network, config.training)
    assert row_tables(network).keys() == expected


def train(folder: Path, **settings) -> nn.Module:
    config = tiny_config(negatives="uniform", negative_count=3, **settings)
    data = prepare_labels(some_documents(64), None, config)
    network = build_network(config, data.tokenizer.size, label_count=len(data.labels))
    task = LabelTask(config, data.train, None, data.labels)
    train_network(network, task, config.training, folder, TrainingProgress(quiet=True))
    return network


def operations(work: Callable[[], object]) -> Counter[str]:
    """Torch's operations in some work, those inside of others as well."""
    with torch.autograd.profiler.profile() as profile:
        work()
    return Counter({each.key: each.count for each in profile.key_averages()})


def test_an_update_by_row_takes_few_more_operations_than_a_dense_one(tmp_path, monkeypatch):
    """A GPU spends longer on starting an operation than on the rows."""
    dense = operations(lambda: train(tmp_path / "dense"))
    monkeypatch.setattr(row_updates, "MANY_LABELS", 0)
    by_row = operations(lambda: train(tmp_path / "by row"))
    assert by_row["Optimizer.step#RowAdam.step"] > dense["Optimizer.step#RowAdam.step"] == 0
    assert by_row.total() < 1.15 * dense.total()


def test_an_update_by_row_waits_for_a_gpu_only_once():
    """Where the number of distinct rows is found."""
    labels = label_tables(sparse=True)
    optimizer = RowAdam(labels.parameters())

    def step():
        rows = labels.rows_of(torch.tensor([[4, 1], [4, 0]]))
        (rows["query"].sum() + rows["bias"].sum()).backward()
        clip_gradients(labels.parameters(), 1.0)
        optimizer.step()

    found = operations(step)
    waits = {name: found[f"aten::{name}"] for name in ("unique_consecutive", "item", "_coalesce", "nonzero")}
    assert waits == {"unique_consecutive": 1, "item": 0, "_coalesce": 0, "nonzero": 0}


def test_a_step_changes_the_rows_that_it_read_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(row_updates, "MANY_LABELS", 0)
    config = tiny_config(negatives="uniform", negative_count=3, batch_size=4)
    data = prepare_labels(some_documents(4), None, config)
    before = build_network(config, data.tokenizer.size, label_count=50).labels
    network = build_network(config, data.tokenizer.size, label_count=50)
    read = []

    class OneBatch(LabelTask):
        def outputs(self, rows, step_seed):
            chosen = super().outputs(rows, step_seed)
            read.extend(chosen.ids[chosen.valid].tolist() if chosen.valid is not None else chosen.ids.ravel())
            return chosen

    task = OneBatch(config, data.train, None, data.labels)
    train_network(network, task, config.training, tmp_path, TrainingProgress(quiet=True))
    for name in ("query", "output", "bias"):
        changed = (getattr(network.labels, name) != getattr(before, name)).reshape(50, -1).any(dim=1)
        assert set(changed.nonzero().squeeze(1).tolist()) == set(read), name


def test_training_by_row_resumes_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(row_updates, "MANY_LABELS", 0)
    whole = train(tmp_path / "whole", epochs=2, ema_decay=0.9)
    save = LabelTask.loss

    def stopped(self, network, rows, step_seed):
        if step_seed[1] == 1:
            raise KeyboardInterrupt
        return save(self, network, rows, step_seed)

    monkeypatch.setattr(LabelTask, "loss", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "stopped", epochs=2, ema_decay=0.9)
    monkeypatch.setattr(LabelTask, "loss", save)
    resumed = train(tmp_path / "stopped", epochs=2, ema_decay=0.9)
    assert same_weights(whole.state_dict(), resumed.state_dict())


def test_rows_are_averaged_as_if_every_row_were_averaged_after_every_step():
    network, generator = network_with_sparse_gradients(), np.random.default_rng(3)
    lazy = MovingAverage(network, 0.8)
    dense = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    optimizers = build_optimizers(network, tiny_config().training)
    for step in range(12):
        network(torch.from_numpy(generator.normal(size=(2, 6))).float()).square().sum().backward()
        lazy.prepare_step()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for average in (lazy, dense):
            average.update_parameters(network)
        if step in (4, 11):
            lazy.catch_up()
            for name, expected in dense.module.state_dict().items():
                torch.testing.assert_close(lazy.module.state_dict()[name], expected, msg=name)


def test_a_toy_with_rows_and_an_average_trains_the_same_twice(tmp_path):
    runs = [
        train_toy(tmp_path / name, ToyTask(), build=network_with_sparse_gradients, ema_decay=0.9)[0]
        for name in ("a", "b")
    ]
    assert same_weights(*runs)


def test_processes_get_the_mean_of_their_rows(monkeypatch):
    """The other process has read other rows, and more of them."""
    mine, other = (
        torch.sparse_coo_tensor([rows], values, (6, 2), check_invariants=True).coalesce()
        for rows, values in (([1, 4], torch.ones(2, 2)), ([0, 1, 5], torch.full((3, 2), 3.0)))
    )
    sent = iter([torch.tensor([3]), other.indices()[0], other.values() / 2])

    def gather(own):
        theirs = next(sent)
        assert own.shape == theirs.shape, "padded to one length"
        return torch.cat([own, theirs])

    monkeypatch.setattr(row_updates, "this_process", lambda: SimpleNamespace(num_processes=2))
    monkeypatch.setattr(row_updates, "gather", gather)
    table = nn.Parameter(torch.zeros(6, 2))
    table.grad = mine
    exchange_rows([table])
    assert torch.equal(table.grad.to_dense(), (mine.to_dense() + other.to_dense()) / 2)
