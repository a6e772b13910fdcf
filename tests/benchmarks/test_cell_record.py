"""The record of a cell has the keys of all files that have been published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cell import Cell, CellRecord, cell_path, finished_cell
from nlpcapsule.errors import DataError

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = sorted((RESULTS / "cells").rglob("*.json"))
LABELS = Cell("labels", "letters", "XML-CNN", "xml-cnn", {"filters": 4}, seed=2, fraction=0.5)
ANSWERS = Cell("answers", "questions", "BM25", "bm25", {}, seed=1)


def made_up_record(cell: Cell, **fields: Any) -> CellRecord:
    """The record of a run that never was."""
    usual: dict[str, Any] = {
        "figures": {"P@1": 0.5},
        "selected_on": {"P@1": 0.4},
        "epochs": [{"epoch": 1, "loss": 2.0}],
        "training_seconds": 1.5,
        "config": {},
        "data": "fingerprint",
        "hardware": "a toaster",
        "commit": "abc123",
    }
    return CellRecord(cell=cell, **{**usual, **fields})


def test_published_records_are_read_and_written_as_they_are() -> None:
    assert len(PUBLISHED) > 40
    for path in PUBLISHED:
        values = json.loads(path.read_text(encoding="utf-8"))
        record = CellRecord.load(path)
        assert cell_path(record.cell, path.parents[1]) == path, (
            "the settings have the fingerprint of the name"
        )
        written = record.to_json()
        assert {**written, "cell": {**written["cell"], **values["cell"]}} == values, path


def test_the_name_of_a_cell_stays() -> None:
    cell = Cell("labels", "mine", "label-query", "label-query", {"text.vectors": "v.txt"}, seed=1)
    assert cell.name == "mine/label-query-ab425215-seed1"
    checkpoints = {**cell.settings, "checkpoint_epochs": 2}
    assert Cell("labels", "mine", "another title", "label-query", checkpoints, seed=1).name == cell.name


@pytest.mark.parametrize(
    "record",
    [
        made_up_record(LABELS, network_only={"P@1": 0.25}, documents_by_iterations=[0, 3]),
        made_up_record(LABELS, is_lower_bound=True, milliseconds_per_document=0.5, parameters=7),
        made_up_record(ANSWERS, figures={"clean": {"MAP": 0.5}}, milliseconds_per_question=1.5),
        made_up_record(ANSWERS, gpu_memory_gib=1.5, process_memory_gib=0.5, model_mib=3.0, version="1.0"),
    ],
)
def test_what_is_written_is_read_back(record: CellRecord, tmp_path: Path) -> None:
    path = cell_path(record.cell, tmp_path)
    path.parent.mkdir(parents=True)
    record.save(path)
    assert finished_cell(record.cell, tmp_path) == record


@pytest.mark.parametrize("key", ["cell", "config"])
def test_a_file_without_a_key_is_named(key: str, tmp_path: Path) -> None:
    values = made_up_record(LABELS).to_json()
    del values[key]
    path = tmp_path / "record.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(DataError, match=rf"record\.json: not the record .*{key}: field required"):
        CellRecord.load(path)


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_file_of_something_else_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"record\.json: not the record of a finished run"):
        CellRecord.load(path)
