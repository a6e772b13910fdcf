"""A run's name changes with what it depends on, and a stopped system continues."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from compare_runs import write_letters

from nlpcapsule.compare import measuring
from nlpcapsule.compare.child_process import ChildProcess
from nlpcapsule.compare.comparison import child_command
from nlpcapsule.compare.data import open_folder
from nlpcapsule.compare.measuring import RUN_JSON, SystemRun, run_name
from nlpcapsule.config import Config
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import DataError

HUB = "sentence-transformers/all-MiniLM-L6-v2"


def name(kind: str = "labels", model: str = "label-query", **settings: Any) -> str:
    return run_name(Config.build(kind, model, overrides=settings))


def test_the_name_changes_with_the_settings() -> None:
    assert name() == name(**{"checkpoint_epochs": 3}), "checkpoints change no result"
    assert len({name(), name(epochs=3), name(encoder=HUB), name("answers")}) == 4
    assert name(**{"training.seed": 7}).endswith("-seed7")


@pytest.mark.parametrize("setting", ["vectors", "tokenizer", "label_names"])
def test_a_file_counts_by_its_contents(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "file"
    model, key = ("hybrid", f"text.{setting}") if setting == "label_names" else ("label-query", setting)
    first = name(model=model, **{key: str(path)})
    path.write_bytes(b"first" * 100_000)
    second = name(model=model, **{key: str(path)})
    path.write_bytes(b"first" * 100_000 + b"!")
    assert len({first, second, name(model=model, **{key: str(path)})}) == 3


@pytest.mark.parametrize(("kind", "model"), [("labels", "label-query"), ("answers", "bi-encoder")])
def test_an_encoders_folder_counts_by_the_contents_of_its_files(
    tmp_path: Path, kind: str, model: str
) -> None:
    files = ("config.json", "model.safetensors", "tokenizer.json")
    for file in (*files, "README.md"):
        (tmp_path / file).write_text(file)
    names = [name(kind, model, encoder=str(tmp_path))]
    (tmp_path / "README.md").write_text("not read")
    assert name(kind, model, encoder=str(tmp_path)) == names[0]
    for changed in files:
        (tmp_path / changed).write_text("other")
        names.append(name(kind, model, encoder=str(tmp_path)))
    assert len(set(names)) == 4


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.txt"
    path.touch()

    def refuse(*_: object) -> None:
        raise OSError("the disk is ill")

    monkeypatch.setattr(measuring.hashlib, "file_digest", refuse)
    with pytest.raises(DataError, match=r"v\.txt: cannot be read: the disk is ill"):
        name(vectors=str(path))


def test_a_run_is_the_same_after_its_way_to_a_child_process(tmp_path: Path) -> None:
    source = open_folder(write_letters(tmp_path / "mine"), ReadOptions(text_key="text", skip_bad_rows=True))
    config = Config.build("labels", "hybrid", assignments=["network=paper", "routing=em"])
    run = SystemRun(source, config, tmp_path / "record.json", "abc")
    assert RUN_JSON.validate_json(RUN_JSON.dump_json(run)) == run


def test_a_system_that_is_stopped_ends_in_order(tmp_path: Path) -> None:
    source = open_folder(write_letters(tmp_path / "mine"), ReadOptions())
    long = {"training.epochs": 10_000, "model.filters": 4, "model.embedding_size": 8}
    config = Config.build("labels", "kim-cnn", overrides=long)
    run, work = SystemRun(source, config, tmp_path / "cells" / "kim.json"), tmp_path / "cells" / "kim.work"
    process, ends = ChildProcess(child_command(run), tmp_path / "kim.log"), time.time() + 300
    while not (work / "metrics.jsonl").exists():
        assert time.time() < ends
        assert not process.has_ended(), process.last_words
        time.sleep(0.05)
    process.stop()
    assert process.code == 128 + signal.SIGTERM
