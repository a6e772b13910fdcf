"""The folder a run writes into: never overwritten, and resumed only with what it began with."""

import json
import os

import pytest
from tiny_runs import fit_documents, fit_questions, tiny_config
from toy_task import PowerCutError

from nlpcapsule.errors import ConfigError, ModelFolderError
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.run_folder import RunFolder


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A folder whose training was cut short in its first batch."""

    def cut(*_):
        raise PowerCutError

    folder = tmp_path / "model"
    with monkeypatch.context() as patched:
        patched.setattr(LabelTask, "loss", cut)
        with pytest.raises(PowerCutError):
            fit_documents(folder, tiny_config())
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_other_settings_are_refused_and_all_changes_are_named(stopped):
    before = contents(stopped)
    with pytest.raises(ConfigError) as refused:
        fit_documents(stopped, tiny_config(seed=7, filters=4), resume=True)
    message = str(refused.value)
    assert "training.seed: 1 then, 7 now" in message
    assert "model.encoder.filters: 8 then, 4 now" in message
    assert "epochs" not in message
    assert contents(stopped) == before


def test_another_network_is_refused(stopped):
    with pytest.raises(ConfigError, match=r"model\.name: 'label-query' then, 'kim-cnn' now"):
        fit_documents(stopped, tiny_config(model="kim-cnn"), resume=True)


@pytest.mark.parametrize("changed", [{"train": 63}, {"dev": 15}, {"dev": 0}])
def test_other_data_are_refused(stopped, changed):
    message = r"the data are not those the run began with; resume with the same, or .*another folder"
    with pytest.raises(ModelFolderError, match=message):
        fit_documents(stopped, tiny_config(), resume=True, **changed)


def test_the_same_data_and_settings_are_accepted(stopped):
    fit_documents(stopped, tiny_config(), resume=True)
    assert RunFolder(stopped, resume=True).finished
    assert not (stopped / "checkpoint").exists()


@pytest.mark.parametrize(
    "contents", ['{"config": {"ta', "", "[]", '{"data": "x"}', '{"config": 1, "data": 2}']
)
def test_a_damaged_note_of_what_a_run_began_with_is_refused_with_a_way_out(stopped, contents):
    (stopped / "checkpoint" / "run.json").write_text(contents, encoding="utf-8")
    message = r"run\.json is damaged; start again without --resume: .* --output, or .*delet"
    with pytest.raises(ModelFolderError, match=message):
        fit_documents(stopped, tiny_config(), resume=True)


def test_an_unfinished_training_is_not_overwritten(stopped):
    state = stopped / "checkpoint" / "network" / "state.safetensors"
    state.parent.mkdir()
    state.write_bytes(b"weights")
    before = contents(stopped)
    with pytest.raises(ModelFolderError, match=r"an unfinished training; .*--output or go on .*--resume"):
        RunFolder(stopped)
    assert contents(stopped) == before


def test_a_finished_model_is_not_overwritten(tmp_path):
    folder = tmp_path / "model"
    fit_questions(folder, tiny_config("answers"))
    before = contents(folder)
    with pytest.raises(ModelFolderError, match=r"holds a finished model; name another folder with --output$"):
        RunFolder(folder)
    assert contents(folder) == before


def test_other_peoples_files_are_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(ModelFolderError, match="holds other files"):
        RunFolder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_that_failed_before_its_first_checkpoint_needs_no_resume(stopped):
    (stopped / "metrics.jsonl").write_text("{}\n", encoding="utf-8")
    (stopped / "checkpoint" / "lexical" / ".part-x1").mkdir(parents=True)
    (stopped / "checkpoint" / "lexical" / ".part-x1" / "tree0.cbor").write_bytes(b"half")
    RunFolder(stopped)
    assert list(stopped.iterdir()) == []
    fit_documents(stopped, tiny_config(epochs=2))
    assert RunFolder(stopped, resume=True).finished


def test_a_run_that_another_process_has_just_begun_is_left_alone(stopped):
    note = stopped / "checkpoint" / "run.json"
    content = json.loads(note.read_text(encoding="utf-8"))
    content["process"][1] = os.getppid()
    note.write_text(json.dumps(content), encoding="utf-8")
    before = contents(stopped)
    with pytest.raises(ModelFolderError, match="another process is training into it"):
        RunFolder(stopped)
    assert contents(stopped) == before


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_is_no_folder(tmp_path, resume):
    file = tmp_path / "model"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(ModelFolderError, match="is a file: expected the name of a folder"):
        RunFolder(file, resume)


@pytest.mark.parametrize("made", [False, True])
def test_there_must_be_something_to_resume(tmp_path, made):
    folder = tmp_path / "model"
    if made:
        folder.mkdir()
    with pytest.raises(ModelFolderError, match="holds no training to resume; leave --resume out"):
        RunFolder(folder, resume=True)


def test_what_a_run_began_with_is_noted(stopped):
    note = json.loads((stopped / "checkpoint" / "run.json").read_text(encoding="utf-8"))
    assert note["config"] == json.loads(tiny_config().model_dump_json())
    assert note["data"]


def test_temporary_files_of_a_killed_run_are_removed_on_resuming(stopped):
    stale = [
        stopped / ".metrics.jsonl.0123abcd.part",
        stopped / "checkpoint" / "network" / ".state.safetensors.0123abcd.part",
        stopped / "checkpoint" / "lexical" / ".part-x1" / "tree" / "tree0.cbor",
        stopped / ".nlpcapsule-saving" / "config.json",
    ]
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half", encoding="utf-8")
    RunFolder(stopped, resume=True)
    assert (stopped / "checkpoint" / "run.json").exists()
    assert not any(path.exists() for path in stale)
    assert not (stopped / "checkpoint" / "lexical" / ".part-x1").exists()


def test_a_run_killed_after_its_model_was_complete_is_finished_on_resuming(tmp_path):
    folder = tmp_path / "model"
    fit_questions(folder, tiny_config("answers"))
    before = contents(folder)
    saved = folder / ".nlpcapsule-saved"
    saved.mkdir()
    for path in before:
        if path.name != "metrics.jsonl":
            path.rename(saved / path.name)
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "run.json").write_text("{}", encoding="utf-8")
    assert RunFolder(folder, resume=True).finished
    assert contents(folder) == before
    assert not (folder / "checkpoint").exists()


def test_a_run_killed_before_it_noted_what_it_began_with_can_be_begun_again(tmp_path):
    folder = tmp_path / "model"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / ".run.json.0123abcd.part").write_text("{", encoding="utf-8")
    with pytest.raises(ModelFolderError, match="holds no training to resume"):
        RunFolder(folder, resume=True)
    (folder / "checkpoint" / ".run.json.0123abcd.part").write_text("{", encoding="utf-8")
    RunFolder(folder)
    assert not (folder / "checkpoint").exists()
