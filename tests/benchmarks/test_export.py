"""A data set of the paper's tables becomes a folder that can be compared on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.export import write_folder
from nlpcapsule.compare.data import open_folder
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError


def _write_eurlex(data: Path) -> None:
    source = data / "eurlex57k"
    source.mkdir(parents=True)
    for part, count in (("train", 6), ("dev", 5)):
        rows = ({"id": f"{part}{n}", "text": f"act {n}", "labels": [f"c{n % 2}"]} for n in range(count))
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (source / f"{part}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    ids = {"train": ["train0", "train2", "train5"], "test": ["dev1", "dev3"]}
    (source / "eurlex15k_ids.json").write_text(json.dumps(ids))


def test_eurlex15k_as_a_folder(tmp_path: Path) -> None:
    _write_eurlex(tmp_path)
    counts = write_folder("eurlex15k", tmp_path, tmp_path / "out")
    assert counts == {"train": 3, "dev": 3, "test": 2}
    source = open_folder(tmp_path / "out", ReadOptions())
    assert source.split == "trained on train.jsonl.gz, selected on dev.jsonl.gz, reported on test.jsonl.gz"
    train, select, report = source.parts()
    assert [row.id for row in train] == ["train0", "train2", "train5"]
    assert [row.id for row in select] == ["dev0", "dev2", "dev4"]
    assert [(row.id, row.text, row.labels) for row in report] == [
        ("dev1", "act 1", ("c1",)),
        ("dev3", "act 3", ("c1",)),
    ]


def test_a_sample_is_drawn_from_all_documents_and_keeps_their_order(tmp_path: Path) -> None:
    _write_eurlex(tmp_path)
    assert write_folder("eurlex57k", tmp_path, tmp_path / "few", sample=3)["train"] == 3
    train = [row.id for row in open_folder(tmp_path / "few", ReadOptions()).parts()[0]]
    assert train == sorted(train)
    assert train != ["train0", "train1", "train2"]


def test_an_unknown_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpCapsuleError, match="no data set 'eurlex15': did you mean 'eurlex15k'"):
        write_folder("eurlex15", tmp_path, tmp_path / "out")
