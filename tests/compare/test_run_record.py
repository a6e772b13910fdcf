"""The record of a run: typed here, with the keys of all files that have been published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compare_runs import made_up_record

from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.run_record import RunRecord, cell_path, finished_cell
from nlpcapsule.errors import DataError

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = sorted((RESULTS / "cells").rglob("*.json"))
LABELS = Cell("labels", "letters", "XML-CNN", "xml-cnn", {"filters": 4}, seed=2, fraction=0.5)
ANSWERS = Cell("answers", "questions", "BM25", "bm25", {}, seed=1)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.relative_to(RESULTS).as_posix())
def test_a_published_record_is_read_and_written_as_it_is(path: Path) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    record = RunRecord.load(path)
    assert cell_path(record.cell, path.parents[1]) == path, "the settings have the fingerprint of the name"
    assert (record.figures, record.commit) == (values["figures"], values["commit"])
    written = record.to_json()
    assert {**written, "cell": {**written["cell"], **values["cell"]}} == values


def test_there_are_published_records() -> None:
    assert len(PUBLISHED) > 40


@pytest.mark.parametrize(
    "record",
    [
        made_up_record(LABELS, network_only={"P@1": 0.25}, documents_by_iterations=[0, 3]),
        made_up_record(LABELS, is_lower_bound=True, milliseconds_per_document=0.5, parameters=7),
        made_up_record(ANSWERS, figures={"clean": {"MAP": 0.5}}, milliseconds_per_question=1.5),
        made_up_record(ANSWERS, gpu_memory_gib=1.5, process_memory_gib=0.5, model_mib=3.0, version="1.0"),
    ],
)
def test_what_is_written_is_read_back(record: RunRecord, tmp_path: Path) -> None:
    path = cell_path(record.cell, tmp_path)
    path.parent.mkdir(parents=True)
    record.save(path)
    assert finished_cell(record.cell, tmp_path) == record


def test_a_record_has_only_the_keys_of_its_kind() -> None:
    labels, answers = (made_up_record(cell).to_json().keys() for cell in (LABELS, ANSWERS))
    assert labels - answers == {
        "network alone",
        "milliseconds per document",
        "documents by routing iterations",
    }
    assert answers - labels == {"milliseconds per question"}
    assert "training seconds are a lower bound" not in labels


def test_an_older_record_may_lack_what_came_later() -> None:
    values = made_up_record(LABELS).to_json()
    for key in ("network alone", "process memory GiB", "model MiB", "nlpcapsule"):
        del values[key]
    del values["cell"]["files"]
    assert RunRecord.from_json(values) == made_up_record(LABELS)


@pytest.mark.parametrize("key", ["cell", "figures", "commit"])
def test_a_file_without_a_key_is_named(key: str, tmp_path: Path) -> None:
    values = made_up_record(LABELS).to_json()
    del values[key]
    path = tmp_path / "record.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(DataError, match=rf"record\.json: not the record .*'{key}' is missing"):
        RunRecord.load(path)


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_file_of_something_else_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"record\.json: not the record of a finished run"):
        RunRecord.load(path)
