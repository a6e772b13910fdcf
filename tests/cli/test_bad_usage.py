"""Options, settings, model folders and outputs that cannot be used: one message, nothing written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from run_command import TINY, assert_refused, run_command, run_process

from nlpcapsule.cli.train import _take_back

GOOD = b'{"text": "one good row", "labels": ["a"], "id": "1"}\n'


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("the 0.1 NaN\na 0.1 0.2\n", r"vectors\.txt, line 1: a number that is not finite"),
        ("the 0.1 0.2\na 0.1 0.2 0.3\n", r"vectors\.txt, line 2: 3 numbers after the word, expected 2"),
        ("the 0.1 zero\n", r"vectors\.txt, line 1: 'zero' is not a number"),
        (None, r"vectors\.txt: there is no such file"),
    ],
)
def test_word_vectors(contents: str | None, message: str, sample: Path, tmp_path: Path) -> None:
    if contents is not None:
        (tmp_path / "vectors.txt").write_text(contents)
    setting = f"text.vectors={tmp_path / 'vectors.txt'}"
    train = sample / "documents-train.jsonl"
    done = run_command("train", train, "--output", tmp_path / "out", *TINY, "--set", setting)
    assert_refused(done, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("contents", ["{}", "no JSON", None])
def test_a_bad_tokenizer_file(contents: str | None, sample: Path, tmp_path: Path) -> None:
    if contents is not None:
        (tmp_path / "tokenizer.json").write_text(contents)
    setting = f"text.tokenizer={tmp_path / 'tokenizer.json'}"
    train = sample / "documents-train.jsonl"
    done = run_command("train", train, "--output", tmp_path / "out", *TINY, "--set", setting)
    assert_refused(done, r"tokenizer\.json: (is not a tokenizer\.json|there is no such tokenizer file)")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--otu", "x"], r"No such option: --otu.*--output.*see `nlpcapsule train --help`"),
        (["--set", "epoch=3"], r"unknown setting 'epoch': did you mean 'training\.epochs'\?"),
        (["--set", "epochs"], r"--set 'epochs': expected key=value"),
        (["--set", "epochs=many"], r"training\.epochs='many': input should be a valid integer"),
        (["--set", "epochs=0"], r"training\.epochs=0: input should be greater than or equal to 1"),
        (["--set", "network=papr"], r"unknown model 'papr': did you mean 'paper'\?"),
        (
            ["--set", "learning_rate=2e9"],
            r"the loss became .*lower training\.learning_rate",
        ),
        (["--model", "kim_cnn"], r"unknown model 'kim_cnn': did you mean 'kim-cnn'\?"),
        (["--task", "label"], r"unknown task 'label': expected 'labels' or 'answers'"),
        (
            ["--task", "answers", "--model", "kim-cnn"],
            r"'kim-cnn' does not rank answers: use one of",
        ),
        (["--model", "paper", "--set", "windows=[2, 99]"], r"windows=.*99.*embedding_size=8"),
        (["--format", "jsnol"], r"unknown format 'jsnol'; did you mean 'jsonl'\?"),
        (["--config", "nowhere.toml"], r"nowhere\.toml: there is no such configuration file"),
        (["--dev-split", "dev"], r"--dev-split.*name the data with --dev"),
        (["--dev", "nowhere.jsonl"], r"nowhere\.jsonl: there is no such file"),
        (["--resume"], r"out holds no training to resume; leave --resume out"),
    ],
)
def test_options_of_training(options: list[str], message: str, sample: Path, tmp_path: Path) -> None:
    train, out = sample / "documents-train.jsonl", tmp_path / "out"
    assert_refused(run_command("train", train, "--output", out, *TINY, *options), message)
    assert not out.exists()


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[training\nepochs = 3", r"c\.toml: not a readable TOML file.*line 1"),
        (
            "[training]\nepoch = 3",
            r"c\.toml: unknown setting training\.epoch: did you mean 'training\.epochs'",
        ),
        ("[trainig]\nepochs = 3", r"c\.toml: unknown section \[trainig\]: did you mean 'training'"),
        ("[training]\nepochs = [3]", r"training\.epochs=\[3\]: input should be a valid integer"),
        ('[model]\nname = "oracle"', r"unknown model 'oracle': expected one of: .*label-query"),
        (
            '[model]\nname = "transformer"',
            r"unknown model 'transformer': did you mean 'transformer-linear'\?",
        ),
    ],
)
def test_configuration_files(toml: str, message: str, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(toml)
    train, out = sample / "documents-train.jsonl", tmp_path / "out"
    assert_refused(run_command("train", train, "--output", out, "--config", tmp_path / "c.toml"), message)
    assert not out.exists()


def truncate_weights(folder: Path) -> None:
    weights = folder / "network.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def edit_labels(folder: Path) -> None:
    labels = folder / "labels.json"
    labels.write_text(labels.read_text(encoding="utf-8").replace("a", "b", 1), encoding="utf-8")


def raise_format_version(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format_version": 99}))


def leave_unfinished(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "checkpoint").mkdir()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, r"model: there is no such model folder"),
        (
            lambda folder: (folder / "manifest.json").unlink(),
            r"model is not a model folder: it has no manifest",
        ),
        (lambda folder: (folder / "manifest.json").write_text("{"), r"manifest\.json is damaged"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"the file tokenizer\.json is missing"),
        (truncate_weights, r"network\.safetensors is not as it was written.*train again"),
        (edit_labels, r"labels\.json is not as it was written \(truncated or edited\)"),
        (raise_format_version, r"format version 99.*upgrade"),
        (leave_unfinished, r"training has not finished.*--resume"),
    ],
)
def test_model_folders(
    damage: Callable[[Path], None], message: str, label_model: Path, sample: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    shutil.copytree(label_model, model)
    damage(model)
    data = sample / "documents-dev.jsonl"
    for command, target in [("evaluate", "--json"), ("predict", "--output"), ("inspect", "--output")]:
        assert_refused(run_command(command, model, data, target, tmp_path / "out"), message)
        assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_a_model_folder(sample: Path) -> None:
    data = sample / "documents-dev.jsonl"
    assert_refused(
        run_command("predict", data, data), r"documents-dev\.jsonl is a file: expected a model folder"
    )


def test_outputs_that_cannot_be_written(label_model: Path, sample: Path, tmp_path: Path) -> None:
    data = sample / "documents-dev.jsonl"
    plain = tmp_path / "plain"
    plain.write_text("older")
    linked = tmp_path / "linked"
    linked.symlink_to(label_model / "x")
    in_place_of_a_file = r"plain is a file: expected the name of a folder to write into"
    for arguments, message in [
        (["predict", label_model, data, "--output", tmp_path], r"is a folder: expected the name of a file"),
        (["evaluate", label_model, data, "--json", tmp_path], r"is a folder: expected the name of a file"),
        (["evaluate", label_model, data, "--json", "/dev/null"], r"/dev/null is a device or a pipe"),
        (
            ["predict", label_model, data, "--output", plain / "x"],
            r"plain is a file, so nothing can be written",
        ),
        (["train", data, "--output", plain], in_place_of_a_file),
        (["train", data, "--output", plain / "x"], r"plain is a file, so nothing can be written"),
        (["inspect", label_model, data, "--output", plain], in_place_of_a_file),
        (["train", data, "--output", label_model / "x"], r"x lies in the model folder"),
        (["train", data, "--output", linked], r"linked lies in the model folder"),
        (["learn", label_model, data, "--output", label_model / "versions" / "0002"], r"lies in the model"),
        (["labels", "retire", label_model, "a", "--output", label_model / "x"], r"lies in the model folder"),
        (["inspect", label_model, data, "--output", label_model / "x"], r"x lies in the model folder"),
        (["train", data, "--output", label_model], r"already holds a finished model; name another folder"),
    ]:
        assert_refused(run_command(*arguments), message)
    assert plain.read_text() == "older"
    assert Path("/dev/null").is_char_device()


def test_training_is_refused_a_folder_with_other_files(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = run_command("train", sample / "documents-train.jsonl", "--output", tmp_path, *TINY)
    assert_refused(done, r"already holds other files; name another folder")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_empty_again_after_training_failed(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    train = sample / "documents-train.jsonl"
    done = run_command("train", train, "--output", out, *TINY, "--set=learning_rate=2e9")
    assert_refused(done, "the loss became")
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("named", ["symlink", "."])
def test_the_error_of_a_training_gets_through_whatever_its_folder_is_called(
    named: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "symlink").symlink_to(folder)
    monkeypatch.chdir(folder if named == "." else tmp_path)
    train = sample / "documents-train.jsonl"
    done = run_command("train", train, "--output", named, *TINY, "--set=learning_rate=2e9")
    assert_refused(done, "the loss became")
    assert list(folder.iterdir()) == []
    assert (tmp_path / "symlink").is_symlink()


def test_the_error_of_a_training_gets_through_even_if_nothing_can_be_taken_back(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.rmdir", refused)
    train, out = sample / "documents-train.jsonl", tmp_path / "out"
    done = run_command("train", train, "--output", out, *TINY, "--set=learning_rate=2e9")
    assert_refused(done, "the loss became")


def test_a_disk_that_fills_up_in_training(
    sample: Path, tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    train, out = sample / "documents-train.jsonl", tmp_path / "out"
    with full_disk(60_000):
        done = run_command("train", train, "--output", out, *TINY, "--set=embedding_size=300")
    assert_refused(done, r"\.safetensors cannot be written: File too large")
    assert not out.exists(), "no network's checkpoint is there to go on from"


def test_numbers_that_make_no_sense(label_model: Path, sample: Path) -> None:
    data = sample / "documents-dev.jsonl"
    for arguments, message in [
        (["predict", label_model, data, "--top-k", "0"], r"'--top-k'.*1.*see `nlpcapsule predict --help`"),
        (["predict", label_model, data, "--top-k", "few"], r"'--top-k'.*integer"),
        (["inspect", label_model, data, "--document", "0"], r"'--document'"),
        (["inspect", label_model, data, "--document", "999"], r"there is no document 999: the data has 20"),
        (["predict", label_model], r"Missing argument 'INPUT'"),
        (["predcit"], r"No such command 'predcit'.*predict"),
    ]:
        assert_refused(run_command(*arguments), message)


def test_standard_input_cannot_be_two_files(tmp_path: Path) -> None:
    done = run_command("train", "-", "--dev", "-", "--output", tmp_path / "out", stdin=GOOD)
    assert_refused(done, r"standard input \(-\) can stand for one file only")
    assert not (tmp_path / "out").exists()


def test_inspecting_what_does_not_route(
    unrouted_model: Path, answer_model: Path, sample: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run_command("inspect", unrouted_model, sample / "documents-dev.jsonl", "--output", out)
    assert_refused(done, r"'kim-cnn' has no routing to inspect.*label-query, paper or official")
    done = run_command("inspect", answer_model, sample / "questions-dev.jsonl", "--output", out)
    assert_refused(done, r"routing of label models; this model ranks answers")
    assert not out.exists()


def test_the_same_in_a_process_of_its_own(label_model: Path) -> None:
    assert_refused(run_process("evaluate", label_model, "-", "--top"), "No such option: --top")


@pytest.mark.parametrize(("weights", "stays"), [("checkpoint/network", True), ("checkpoint/lexical", False)])
def test_a_run_that_failed_leaves_its_networks_checkpoints_wherever_it_is(
    weights: str, stays: bool, tmp_path: Path
) -> None:
    out = tmp_path / "lexical" / "model"  # a folder of that name above it says nothing about what is in it
    (out / weights).mkdir(parents=True)
    (out / weights / "state.safetensors").touch()
    _take_back(out, existed=False)
    assert out.exists() == stays
