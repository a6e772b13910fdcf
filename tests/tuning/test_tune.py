"""`tune`: trials are compared on held-out documents, poor ones stop early, a search can be continued."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from nlpcapsule.config import Config
from nlpcapsule.errors import MissingExtraError
from nlpcapsule.sample import load_documents
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.tuning.search_space import Range, searched_settings, setting_value
from nlpcapsule.tuning.toml_file import config_toml
from nlpcapsule.tuning.tune import _StoppedEarlyError, _TrialProgress, tune
from tests.cli.run_command import Finished, assert_refused, run_command

optuna = pytest.importorskip("optuna")

TINY = [
    "--model=label-query",
    "--set=embedding_size=8",
    "--set=filters=8",
    "--set=capsule_size=8",
    "--set=epochs=1",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    rows = (json.dumps({"text": row.text, "labels": row.labels}) for row in load_documents("train")[:60])
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def run(data: Path, *options: object) -> Finished:
    return run_command("tune", data, "--output", data.parent / "search", *TINY, *options)


def trials(folder: Path) -> list[Any]:
    return optuna.load_study(study_name="nlpcapsule", storage=f"sqlite:///{folder / 'study.sqlite'}").trials


def test_a_search_is_continued_and_its_best_settings_can_be_trained_with(data: Path, tmp_path: Path) -> None:
    done = run(data, "--trials", 2)
    assert done.code == 0, done.err
    first = trials(tmp_path / "search")
    assert len(first) == 2
    defaults = Config.build("labels", "label-query")
    assert first[0].params["learning_rate"] == setting_value(defaults, "learning_rate"), "defaults come first"
    assert first[0].params != first[1].params
    done = run(data, "--trials", 3)
    assert "trial 3 of 3" in done.err
    assert "trial 2 of 3" not in done.err
    found = trials(tmp_path / "search")
    assert [trial.params for trial in found[:2]] == [trial.params for trial in first]
    assert found[2].params not in [trial.params for trial in first], "choices are not repeated"
    best = max((trial for trial in found if trial.value is not None), key=lambda trial: trial.value)
    config = Config.build("labels", file=tmp_path / "search" / "best.toml")
    assert setting_value(config, "learning_rate") == best.params["learning_rate"]
    assert setting_value(config, "capsule_size") == 8
    assert {path.name for path in (tmp_path / "search").iterdir()} == {
        "best.toml",
        "study.json",
        "study.sqlite",
    }
    trained = run_command(
        "train", data, "--config", tmp_path / "search" / "best.toml", "--output", tmp_path / "model", "-q"
    )
    assert trained.code == 0, trained.err


def test_another_search_in_the_same_folder_is_refused(data: Path, tmp_path: Path) -> None:
    assert run(data, "--trials", 1, "-q").code == 0
    assert_refused(run(data, "--trials", 2, "--set=max_tokens=9"), "a search with other data or settings")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    done = run_command("tune", data, "--output", tmp_path / "other", *TINY)
    assert_refused(done, "holds other files and no search")


def test_a_trial_that_was_killed_does_not_count(data: Path, tmp_path: Path) -> None:
    assert run(data, "--trials", 1, "-q").code == 0
    storage = f"sqlite:///{tmp_path / 'search' / 'study.sqlite'}"
    optuna.load_study(study_name="nlpcapsule", storage=storage).ask()  # begun and never finished
    assert run(data, "--trials", 2, "-q").code == 0
    states = [trial.state.name for trial in trials(tmp_path / "search")]
    assert states == ["COMPLETE", "FAIL", "COMPLETE"]


def test_ctrl_c_says_how_to_go_on(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nlpcapsule.tuning.tune.tune", interrupted)
    done = run(data, "--trials", 1, "-q")
    assert (done.code, done.err) == (130, "stopped; the same command continues the search\n")


class StubTrial:
    """A trial that optuna would stop once its metric is below one half."""

    number = 0

    def __init__(self) -> None:
        self.reported: list[tuple[float, int]] = []

    def report(self, value: float, step: int) -> None:
        self.reported.append((value, step))

    def should_prune(self) -> bool:
        return self.reported[-1][0] < 0.5


def test_a_poor_trial_is_stopped_after_an_epoch_but_never_after_its_last() -> None:
    trial = StubTrial()
    progress = _TrialProgress(trial, "label-query", TrainingProgress(quiet=True))  # type: ignore[arg-type]
    progress.epoch("kim-cnn (nominates)", {"epoch": 1, "epochs": 2, "nDCG@5": 0.1})
    assert trial.reported == []
    progress.epoch("label-query", {"epoch": 1, "epochs": 3, "nDCG@5": 0.7})
    progress.epoch("label-query", {"epoch": 2, "epochs": 3, "nDCG@5": 0.6})
    assert trial.reported == [(0.7, 1), (0.7, 2)], "the best epoch so far counts"
    poor = _TrialProgress(StubTrial(), "label-query", TrainingProgress(quiet=True))  # type: ignore[arg-type]
    poor.epoch("label-query", {"epoch": 3, "epochs": 3, "nDCG@5": 0.1})
    with pytest.raises(_StoppedEarlyError):
        poor.epoch("label-query", {"epoch": 1, "epochs": 3, "nDCG@5": 0.1})


def test_settings_that_the_user_gave_are_not_searched() -> None:
    config = Config.build("labels")
    every = searched_settings(config, set())
    assert isinstance(every["learning_rate"], Range)
    assert "C" not in every, "a hybrid's lexical system has no such setting"
    assert "learning_rate" not in searched_settings(config, {"training.learning_rate"})
    assert set(searched_settings(Config.build("labels", "one-vs-rest"), set())) == {"C"}


@pytest.mark.parametrize("model", ["hybrid", "label-query", "one-vs-rest", "paper"])
def test_a_configuration_survives_the_way_through_toml(model: str, tmp_path: Path) -> None:
    config = Config.build("labels", model, overrides={"text.vectors": 'a "path"\\with\nall'})
    (tmp_path / "best.toml").write_text(config_toml(config, "two\nlines"), encoding="utf-8")
    assert Config.build("labels", file=tmp_path / "best.toml") == config


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"nlpcapsule\[tune\]"):
        tune(None, Config.build("labels"), {}, tmp_path, 1, TrainingProgress(quiet=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "damage",
    [
        "bytes",
        "cut",
        "pipe",
        "link",
        "DELETE FROM trial_params",
        "UPDATE trial_values SET value = 1e308",
        "UPDATE study_directions SET direction = 'MINIMIZE'",
        "UPDATE trials SET state = 'x'",
    ],
)
def test_a_damaged_study_is_refused(data: Path, tmp_path: Path, damage: str) -> None:
    options = ["--output", tmp_path / "search", "--model=one-vs-rest"]
    assert run_command("tune", data, *options, "--trials", 1).code == 0
    study = tmp_path / "search" / "study.sqlite"
    content = study.read_bytes()
    if damage == "bytes":
        study.write_bytes(b"no database" * 100)
    elif damage == "cut":
        study.write_bytes(content[: len(content) // 2])
    elif damage == "pipe":
        study.unlink()
        os.mkfifo(study)
    elif damage == "link":
        study.symlink_to(study.rename(tmp_path / "elsewhere.sqlite"))
    else:
        with sqlite3.connect(study) as connection:
            connection.execute(damage)
        connection.close()
    done = run_command("tune", data, *options, "--trials", 2)
    problem = "no plain file" if damage in ("pipe", "link") else "damaged"
    assert_refused(done, rf"study\.sqlite is {problem}")
