"""Versions of a model in one folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from learned_models import old_documents

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.learning.label_edits import rename_label
from nlpcapsule.learning.versions import list_versions, roll_back, version_numbers, write_version
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.models import LabelModel
from tests.cli.run_command import assert_refused, run_command


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A model with two versions; the second calls a label differently."""
    place = tmp_path / "model"
    shutil.copytree(trained, place)
    model = load_model(place)
    assert isinstance(model, LabelModel)
    assert write_version(rename_label(model, "fish", "sea"), place) == 2
    return place


def names(folder: Path) -> set[str]:
    model = load_model(folder)
    assert isinstance(model, LabelModel)
    return set(model.labels.ids)


def test_the_current_version_is_loaded_and_can_be_rolled_back(folder: Path) -> None:
    assert "sea" in names(folder)
    roll_back(folder, 1)
    assert "fish" in names(folder)
    roll_back(folder, 2)
    assert "sea" in names(folder)
    with pytest.raises(ModelFolderError, match="has no version 3; its versions: 1, 2"):
        roll_back(folder, 3)


def test_a_version_written_after_a_rollback_gets_a_number_of_its_own(folder: Path) -> None:
    roll_back(folder, 1)
    first = load_model(folder)
    assert isinstance(first, LabelModel)
    assert write_version(rename_label(first, "iron", "ore"), folder) == 3
    found = list_versions(folder)
    assert [version.number for version in found] == [1, 2, 3]
    assert [version.is_current for version in found] == [False, False, True]
    assert [version.what for version in found] == [
        "trained",
        "renamed 'fish' to 'sea'",
        "renamed 'iron' to 'ore'",
    ]
    assert {"fish", "ore"} <= names(folder)


def test_a_version_that_cannot_be_saved_leaves_the_earlier_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(folder)
    assert isinstance(model, LabelModel)

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("nlpcapsule.learning.versions.set_current", fail)
    with pytest.raises(ModelFolderError, match="the disk is full"):
        write_version(rename_label(model, "iron", "ore"), folder)
    assert "ore" not in names(folder)
    assert [path.name for path in (folder / "versions").iterdir() if path.name.startswith(".")] == []


def test_what_a_killed_process_left_is_ignored_and_removed(folder: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    left = folder / "versions" / f".part-{process.pid}-12345678"
    left.mkdir()
    assert version_numbers(folder) == [1, 2]
    model = load_model(folder)
    assert isinstance(model, LabelModel)
    write_version(model, folder)
    assert not left.exists()


@pytest.mark.parametrize("text", ["", "[]", '{"version": 0}', '{"version": true}', '{"version": "2"}', "{}"])
def test_a_damaged_pointer_is_refused(folder: Path, text: str) -> None:
    (folder / "current.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"current\.json is damaged"):
        load_model(folder)


def test_a_pointer_to_a_missing_or_linked_version_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "current.json").write_text('{"version": 7}', encoding="utf-8")
    with pytest.raises(ModelFolderError, match="names a version that is not in"):
        load_model(folder)
    (folder / "versions" / "0002").rename(tmp_path / "elsewhere")
    (folder / "versions" / "0007").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFolderError, match="names a version that is not in"):
        load_model(folder)


def test_saving_over_a_folder_with_versions_is_refused(folder: Path) -> None:
    with pytest.raises(ModelFolderError, match="several versions"):
        save_model(load_model(folder), folder)


def test_the_commands_list_compare_and_roll_back(folder: Path, tmp_path: Path) -> None:
    listed = run_command("versions", "list", folder).out
    assert "2 (current)" in listed
    lines = run_command("versions", "list", folder, "--json-lines").out.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["version"], row["current"]) for row in rows] == [(1, False), (2, True)]
    data = tmp_path / "data.jsonl"
    lines = (json.dumps({"text": text.text, "labels": text.labels}) for text in old_documents()[:30])
    data.write_text("\n".join(lines), encoding="utf-8")
    done = run_command("versions", "compare", folder, 1, 2, "--data", data, "-q")
    found = json.loads(done.out)
    assert found["new_labels"] == ["sea"]
    assert found["missing_labels"] == ["fish"]
    assert (
        found["figures"]["P@1"]["difference"]
        == found["figures"]["P@1"]["second"] - found["figures"]["P@1"]["first"]
    )
    assert run_command("versions", "rollback", folder, 1).code == 0
    assert "fish" in names(folder)
    assert_refused(run_command("versions", "rollback", folder, 9), "has no version 9")
    assert_refused(run_command("versions", "list", tmp_path / "none"), "no such model folder")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.json", "[1]"),
        ("labels.json", "7"),
        ("labels.json", '[{"label": "a"}]'),
        ("labels.json", '[{"label": ["a"], "documents": 1}]'),
        ("facts.json", "[]"),
        ("facts.json", "{"),
    ],
)
def test_a_damaged_version_is_named(folder: Path, name: str, text: str) -> None:
    (folder / "versions" / "0002" / name).write_text(text, encoding="utf-8")
    for words in (["list", folder], ["list", folder, "--json-lines"], ["compare", folder, 1, 2]):
        assert_refused(run_command("versions", *words), rf"version 2 of .* is damaged: .*{name}")


def test_a_version_cannot_control_the_terminal(folder: Path) -> None:
    (folder / "versions" / "0002" / "facts.json").write_text(
        '{"changes": ["a\\u001b[2Jb"]}', encoding="utf-8"
    )
    done = run_command("versions", "list", folder)
    assert "\x1b" not in done.out
    assert r"a\x1b[2Jb" in done.out
