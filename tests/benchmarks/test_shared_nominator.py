"""Cells that would train the same nominator train it once, and rank as with a nominator of their own."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_data import tiny_parts

from benchmarks import run_cell as run_cell_module
from benchmarks import shared_nominator as module
from benchmarks.cell import Cell, finished_cell
from benchmarks.run_cell import _shared_parts, run_cell
from benchmarks.run_labels import run_labels, training_data
from benchmarks.shared_nominator import shared_nominator
from nlpcapsule.scoring.documents import rank_documents
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.training.fit_labels import train_nominator
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

SIZES = {"embedding_size": 8, "filters": 4, "capsule_size": 4, "condensed": 3, "max_tokens": 20}
PAPER = Cell(
    "labels",
    "letters",
    "paper, KDE",
    "paper",
    {**SIZES, "routing": "kde", "candidates": 5, "training.epochs": 3, "checkpoint_epochs": 1},
    seed=1,
)
QUIET = TrainingProgress(quiet=True)


def with_settings(cell, **settings):
    return replace(cell, settings={**cell.settings, **settings})


@pytest.fixture(scope="module")
def data():
    return training_data(tiny_parts().cut(20))


@pytest.fixture
def trained(monkeypatch):
    """The configurations that a nominator was trained for."""
    configs = []

    def noted(data, config, *rest):
        configs.append(config)
        return train_nominator(data, config, *rest)

    monkeypatch.setattr(module, "train_nominator", noted)
    return configs


def stop_before_epoch(monkeypatch, number):
    """Interrupts a training when it is to be measured for the so-manieth time; counts the epochs."""
    measure, epochs = LabelTask.dev_metrics, []

    def counted(task, network):
        epochs.append(task.title)
        if len(epochs) == number:
            raise KeyboardInterrupt
        return measure(task, network)

    monkeypatch.setattr(LabelTask, "dev_metrics", counted)
    return epochs


def same_weights(one, other):
    weights = other.state_dict()
    return all(torch.equal(tensor, weights[name]) for name, tensor in one.state_dict().items())


def test_two_cells_train_one_nominator(tmp_path, data, trained, monkeypatch):
    monkeypatch.setattr(run_cell_module, "label_parts", lambda *_: tiny_parts())
    other = with_settings(PAPER, routing="dynamic", condensed=4)
    for cell in (PAPER, other):
        run_cell(cell, None, tmp_path, "")
    assert len(trained) == 1
    assert finished_cell(other, tmp_path).config["model"]["routing"] == "dynamic"
    (place,) = (tmp_path / "nominators").iterdir()
    assert {path.name for path in place.iterdir()} == {"lock", "nominator.safetensors"}


@pytest.mark.parametrize("settings", [{"seed": 2}, {"training.epochs": 2}, {"max_tokens": 15}])
def test_another_training_has_a_nominator_of_its_own(tmp_path, data, trained, settings):
    for cell in (PAPER, with_settings(PAPER, **settings)):
        cell = replace(cell, seed=cell.settings.get("seed", 1))
        cell.settings.pop("seed", None)
        shared_nominator(data, cell.config, tmp_path, QUIET)
    assert len(trained) == len(list(tmp_path.iterdir())) == 2


def test_other_data_have_a_nominator_of_their_own(tmp_path, data, trained):
    half = training_data(tiny_parts().cut(20), fraction=0.5)
    for each in (data, half):
        shared_nominator(each, PAPER.config, tmp_path, QUIET)
    assert len(trained) == 2


@pytest.mark.parametrize(
    "settings",
    [{"candidates": 0}, {"candidates": 10_000}, {"network": "paper", "lexical": "one-vs-rest"}],
    ids=["all labels", "more candidates than labels", "a lexical system nominates"],
)
def test_none_is_trained_where_none_is_needed(tmp_path, data, trained, settings):
    cell = replace(PAPER, model="hybrid") if "lexical" in settings else PAPER
    config = with_settings(cell, **settings).config
    assert shared_nominator(data, config, tmp_path / "nominators", QUIET) is None
    assert not trained
    assert not (tmp_path / "nominators").exists()


def test_it_nominates_what_a_nominator_of_ones_own_does(tmp_path, data):
    own = train_nominator(data, PAPER.config, RunFolder(tmp_path / "own"), QUIET)
    shared = shared_nominator(data, PAPER.config, tmp_path / "nominators", QUIET)
    again = shared_nominator(data, PAPER.config, tmp_path / "nominators", QUIET)
    assert not shared.training
    assert same_weights(own, shared)
    assert same_weights(own, again)
    padding = data.tokenizer.padding_id
    scorers = (NetworkScorer(network, padding) for network in (shared, own))
    ours, theirs = (rank_documents(scorer, data.dev.tokens, 5).labels for scorer in scorers)
    np.testing.assert_array_equal(ours, theirs)


def test_a_cell_has_the_figures_that_it_has_with_a_nominator_of_its_own(tmp_path):
    def measured(folder, nominators):
        parts = nominators and _shared_parts(PAPER, None, nominators)
        return run_labels(PAPER, tiny_parts(), RunFolder(folder), QUIET, parts)

    own, per_document = measured(tmp_path / "own", None)
    shared, per_document_shared = measured(tmp_path / "shared", tmp_path / "nominators")
    assert list((tmp_path / "nominators").glob("*/nominator.safetensors"))
    assert shared["figures"] == own["figures"]
    assert shared["selected on"] == own["selected on"]
    np.testing.assert_array_equal(per_document_shared, per_document)


def test_a_nominator_that_was_stopped_goes_on(tmp_path, data, monkeypatch):
    whole = shared_nominator(data, PAPER.config, tmp_path / "whole", QUIET)
    with monkeypatch.context() as patched:
        stop_before_epoch(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            shared_nominator(data, PAPER.config, tmp_path / "cut", QUIET)
    assert not list((tmp_path / "cut").glob("*/nominator.safetensors"))
    epochs = stop_before_epoch(monkeypatch, None)
    resumed = shared_nominator(data, PAPER.config, tmp_path / "cut", QUIET)
    assert len(epochs) == 1  # the third of three
    assert same_weights(resumed, whole)


def test_a_cell_with_another_batch_at_inference_goes_on_with_it_too(tmp_path, data, monkeypatch):
    with monkeypatch.context() as patched:
        stop_before_epoch(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            shared_nominator(data, PAPER.config, tmp_path, QUIET)
    other = with_settings(PAPER, **{"inference.batch_size": 7, "candidates": 4}).config
    epochs = stop_before_epoch(monkeypatch, None)
    assert shared_nominator(data, other, tmp_path, QUIET) is not None
    assert len(epochs) == 1


def test_one_that_was_stopped_before_its_first_note_begins_anew(tmp_path, data, monkeypatch):
    def stopped(run, *_):
        run.checkpoint.mkdir(parents=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "begin", stopped)
        with pytest.raises(KeyboardInterrupt):
            shared_nominator(data, PAPER.config, tmp_path, QUIET)
    assert shared_nominator(data, PAPER.config, tmp_path, QUIET) is not None


def test_of_several_at_a_time_one_trains_and_the_others_wait(tmp_path, data, monkeypatch):
    weights = train_nominator(data, PAPER.config, RunFolder(tmp_path / "own"), QUIET)
    began = []

    def slow(*_):
        began.append(1)
        time.sleep(0.3)
        return weights

    monkeypatch.setattr(module, "train_nominator", slow)
    with ThreadPoolExecutor(3) as pool:
        wanted = [
            pool.submit(shared_nominator, data, PAPER.config, tmp_path / "nominators", QUIET)
            for _ in range(3)
        ]
        nominators = [each.result() for each in wanted]
    assert len(began) == 1
    assert all(same_weights(weights, nominator) for nominator in nominators)
