"""Files that settings name count by what they hold: in a run's name, and in what is made ready for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compare_runs import write_letters
from tiny_transformer import write_tokenizer

from nlpcapsule.compare import named_files
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.data import open_folder
from nlpcapsule.compare.encoded_parts import EncodedParts
from nlpcapsule.compare.named_files import files_fingerprint
from nlpcapsule.compare.prepared import prepare
from nlpcapsule.config import Config
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import DataError

HUB = "sentence-transformers/all-MiniLM-L6-v2"


def fingerprint(kind: str = "labels", model: str = "label-query", **settings: Any) -> str:
    return files_fingerprint(Config.build(kind, model, overrides=settings))


@pytest.mark.parametrize("setting", ["vectors", "tokenizer"])
def test_a_file_counts_by_what_it_holds(tmp_path: Path, setting: str) -> None:
    path, copy = tmp_path / "file", tmp_path / "elsewhere" / "file"
    copy.parent.mkdir()
    path.write_bytes(b"first" * 100_000)
    copy.write_bytes(path.read_bytes())
    first = fingerprint(**{setting: str(path)})
    assert first == fingerprint(**{setting: str(copy)}) != ""
    path.write_bytes(b"first" * 100_000 + b"!")
    assert fingerprint(**{setting: str(path)}) != first


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("labels", "label-query"),
        ("labels", "transformer-linear"),
        ("labels", "embedding-linear"),
        ("answers", "bi-encoder"),
    ],
)
@pytest.mark.parametrize("changed", ["config.json", "model.safetensors", "tokenizer.json"])
def test_an_encoders_folder_counts_by_what_its_files_hold(
    tmp_path: Path, kind: str, model: str, changed: str
) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        (tmp_path / name).write_text(name)
    first = fingerprint(kind, model, encoder=str(tmp_path))
    (tmp_path / "README.md").write_text("not read")
    assert fingerprint(kind, model, encoder=str(tmp_path)) == first != ""
    (tmp_path / changed).write_text("other")
    assert fingerprint(kind, model, encoder=str(tmp_path)) != first


def test_settings_without_files_and_transformers_of_the_hub_are_told_by_their_names(tmp_path: Path) -> None:
    assert fingerprint() == fingerprint(encoder=HUB) == fingerprint("answers", "bi-encoder") == ""
    assert fingerprint(vectors=str(tmp_path / "not there")) == "", "its reader will say so"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.txt"
    path.touch()

    def refuse(*_: object) -> None:
        raise OSError("the disk is ill")

    monkeypatch.setattr(named_files.hashlib, "file_digest", refuse)
    with pytest.raises(DataError, match=r"v\.txt: cannot be read: the disk is ill"):
        fingerprint(vectors=str(path))


def test_only_files_change_the_name_of_a_cell() -> None:
    cell = Cell("labels", "mine", "label-query", "label-query", {"text.vectors": "v.txt"}, seed=1)
    assert cell.name == "mine/label-query-ab425215-seed1", "as it was before files counted"
    assert len({cell.name, replace(cell, files="a").name, replace(cell, files="b").name}) == 3


def test_systems_that_share_a_tokenizer_read_as_if_they_had_it_alone(tmp_path: Path) -> None:
    """What is made ready for the one that reads most is cut for the others; the last mark stays."""
    path = tmp_path / "tokenizer.json"
    write_tokenizer(path)
    source = open_folder(write_letters(tmp_path / "mine"), ReadOptions())
    lengths = {"kim-cnn": 4, "one-vs-rest": 7}
    cells = [
        Cell(
            "labels",
            source.name,
            name,
            name,
            {"text.tokenizer": str(path), "text.max_tokens": length},
            seed=1,
        )
        for name, length in lengths.items()
    ]
    places, _ = prepare(source, cells, tmp_path / "out")
    assert len(set(places.values())) == 1
    texts = [row.text for row in source.documents()[0]]
    for name, length in lengths.items():
        read = EncodedParts.load(places[name] / source.name).cut(length).train.tokens
        direct = WordTokenizer.from_file(path).encode(texts, length)
        assert [row.tolist() for row in read] == [row.tolist() for row in direct]
