"""Resuming the whole way from documents to a model folder: nominator, network, manifest."""

import pytest
from tiny_runs import fit_documents, fit_questions, tiny_config
from toy_task import PowerCutError

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model, manifest, saving
from nlpcapsule.training.answer_task import AnswerTask
from nlpcapsule.training.label_task import LabelTask

LABELS = tiny_config(
    model="paper",
    epochs=2,
    negatives="hard",
    negative_count=5,
    candidates=6,
    ema_decay=0.9,
    gradient_accumulation_steps=2,
    checkpoint_epochs=0.01,
)
ANSWERS = tiny_config("answers", epochs=2, batch_size=4, checkpoint_epochs=0.3, ema_decay=0.5)
FILES = ["config.json", "facts.json", "labels.json", "manifest.json", "network.safetensors", "tokenizer.json"]


def cut_after(monkeypatch, task, batches):
    """The power fails when the task has done so many batches."""
    loss, done = task.loss, []

    def counted(*args):
        if len(done) == batches:
            raise PowerCutError
        done.append(1)
        return loss(*args)

    monkeypatch.setattr(task, "loss", counted)


@pytest.fixture(scope="module")
def whole_labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    fit_documents(folder, LABELS)
    return folder


@pytest.fixture(scope="module")
def whole_answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    fit_questions(folder, ANSWERS)
    return folder


# Four batches an epoch: the nominator takes the first eight, the network the next eight.
@pytest.mark.parametrize("batches", [0, 8, 13])
def test_labels_with_a_nominator_and_hard_negatives(whole_labels, tmp_path, monkeypatch, batches):
    with monkeypatch.context() as patched:
        cut_after(patched, LabelTask, batches)
        with pytest.raises(PowerCutError):
            fit_documents(tmp_path, LABELS)
    fit_documents(tmp_path, LABELS, resume=True)
    for name in [*FILES, "nominator.safetensors"]:
        assert (tmp_path / name).read_bytes() == (whole_labels / name).read_bytes(), name


@pytest.mark.parametrize("votes", ["pair", "class"])
@pytest.mark.parametrize("batches", [3, 14])
def test_paper_resumed_from_an_older_checkpoint(tmp_path, monkeypatch, votes, batches):
    """Four batches an epoch; only the second epoch is kept, so up to seven batches are done again."""
    config = tiny_config(model="paper", votes=votes, epochs=4, checkpoint_epochs=2)
    fit_documents(tmp_path / "whole", config)
    with monkeypatch.context() as patched:
        cut_after(patched, LabelTask, batches)
        with pytest.raises(PowerCutError):
            fit_documents(tmp_path / "cut", config)
    state = tmp_path / "cut" / "checkpoint" / "network" / "state.safetensors"
    assert state.exists() == (batches > 8)
    fit_documents(tmp_path / "cut", config, resume=True)
    for name in FILES:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.parametrize("batches", [1, 11])
def test_answers(whole_answers, tmp_path, monkeypatch, batches):
    with monkeypatch.context() as patched:
        cut_after(patched, AnswerTask, batches)
        with pytest.raises(PowerCutError):
            fit_questions(tmp_path, ANSWERS)
    fit_questions(tmp_path, ANSWERS, resume=True)
    weights = "network.safetensors"
    assert (tmp_path / weights).read_bytes() == (whole_answers / weights).read_bytes()


@pytest.mark.parametrize("broken", ["config.json", "network.safetensors", "manifest.json"])
def test_a_run_cut_short_while_its_model_is_written_is_finished_on_resuming(
    whole_labels, tmp_path, monkeypatch, broken
):
    """Training is over, but there is no manifest yet: nothing may pass for a model, nothing may be lost."""
    write_text, save_file = saving.write_text, saving.save_file

    def cut_text(path, text):
        if path.name == broken:
            raise PowerCutError
        write_text(path, text)

    def cut_weights(tensors, path):
        if broken in path.name:
            raise PowerCutError
        save_file(tensors, path)

    with monkeypatch.context() as patched:
        patched.setattr(saving, "write_text", cut_text)
        patched.setattr(manifest, "write_text", cut_text)
        patched.setattr(saving, "save_file", cut_weights)
        with pytest.raises(PowerCutError):
            fit_documents(tmp_path, LABELS)
    with pytest.raises(ModelFolderError, match=r"training has not finished; .*--resume"):
        load_model(tmp_path)
    fit_documents(tmp_path, LABELS, resume=True)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (whole_labels / name).read_bytes(), name
