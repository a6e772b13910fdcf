"""Tables of systems that use label names: names beside the arrays, evidence stored with them."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from tiny_data import tiny_cell, tiny_parts, write_eurlex, write_vectors
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.encoded_parts import EncodedParts
from benchmarks.label_data import label_parts
from benchmarks.label_name_files import NAMES_FILE, with_label_names
from benchmarks.named_labels import named_folder
from benchmarks.run_cell import run_cell
from benchmarks.run_labels import training_data
from benchmarks.stored_evidence import StoredEvidence, evidence_path
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError
from nlpcapsule.training import fit_labels as fit_module

UNSEEN = {"select": ["volcano", "unnamed"], "report": ["unnamed", "glacier", "volcano"]}
CELL = tiny_cell("label-query with names", **{"text.label_names": NAMES_FILE})


def with_labels(documents, first, *more):
    """The documents, of whose labels from `first` upwards only the last have any, one each."""
    rows = [row[row < first].tolist() for row in documents.labels]
    for place, label in enumerate(more, start=1):
        rows[-place] = [*rows[-place], first + label]
    return EncodedDocuments(documents.tokens, Ragged.from_rows(rows))


@pytest.fixture
def data(tmp_path):
    """Letters of which some have labels that no training document has; most of these are named."""
    parts, folder = tiny_parts(), tmp_path / "data" / "letters"
    count = len(parts.labels)
    replace(
        parts,
        select=with_labels(parts.select, count, 0, 1),
        report=with_labels(parts.report, count, 0, 1, 2),
    ).save(folder)
    names = {label: label.replace("-", " ") for label in parts.labels.ids}
    (folder / NAMES_FILE).write_text(json.dumps({"glacier": "glacier", **names, "volcano": "volcano"}))
    (folder / "unseen-labels.json").write_text(json.dumps(UNSEEN))
    return tmp_path / "data"


def test_ids_of_unseen_labels_become_those_of_the_names(data):
    parts = EncodedParts.load(data / "letters")
    seen = len(parts.labels)
    named, thesaurus = with_label_names(parts, data / "letters")
    assert named.labels.ids[seen:] == ["glacier", "volcano"]
    assert len(thesaurus) == seen + 2
    assert [int(row[-1]) - seen for row in list(named.select.labels)[-2:]] == [2, 1]  # unnamed, volcano
    assert [int(row[-1]) - seen for row in list(named.report.labels)[-3:]] == [1, 0, 2]
    assert named.select.labels.values[0] == parts.select.labels.values[0]


def test_arrays_without_names_or_with_those_of_others_are_refused(data):
    parts = EncodedParts.load(data / "letters")
    (data / "letters" / "unseen-labels.json").write_text(json.dumps({"select": [], "report": []}))
    with pytest.raises(DataError, match="does not belong to these documents"):
        with_label_names(parts, data / "letters")
    (data / "letters" / NAMES_FILE).unlink()
    with pytest.raises(DataError, match=r"label-names\.json is missing.*prepare"):
        with_label_names(parts, data / "letters")


def test_a_cell_with_stored_evidence_ranks_labels_without_examples(data, tmp_path, monkeypatch):
    done = CliRunner().invoke(app, ["evidence", str(data), "letters", "--label-names"])
    assert done.exit_code == 0, done.output
    path = evidence_path(data / "letters", "one-vs-rest", named=True)
    assert path.exists()
    named, thesaurus = with_label_names(EncodedParts.load(data / "letters"), data / "letters")
    stored = StoredEvidence.load(path, named)
    labels, _ = stored.top(named.report.tokens, 200)
    assert set(labels[0]) == set(range(len(named.labels)))  # fewer labels than places
    matches = stored.names(named.report.tokens, labels)
    assert matches.shape == (*labels.shape, 2)
    assert np.isfinite(matches).all()
    assert (training_data(named, thesaurus=thesaurus).labels.counts == 0).sum() == 2

    monkeypatch.setattr(fit_module, "fit_evidence", lambda *_: pytest.fail("found out anew"))
    record = run_cell(CELL, data, tmp_path / "cells", "")
    assert record.figures["unseen true labels"] == 3
    assert record.config["text"]["label_names"] == NAMES_FILE
    assert record.cell.settings["text.label_names"] == NAMES_FILE


def test_evidence_without_names_knows_no_names(data):
    CliRunner().invoke(app, ["evidence", str(data), "letters"])
    parts = EncodedParts.load(data / "letters")
    stored = StoredEvidence.load(evidence_path(data / "letters", "one-vs-rest"), parts)
    candidates, _ = stored.top(parts.report.tokens, 200)
    assert stored.names(parts.report.tokens, candidates) is None


def test_names_are_made_where_only_the_texts_are_there(tmp_path):
    write_eurlex(tmp_path / "data")
    write_vectors(tmp_path / "data")
    made = tmp_path / "made"
    label_parts("eurlex15k", tmp_path / "data", tmp_path / "cache").save(made)
    path = tmp_path / "data" / "eurlex57k" / "eurovoc.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"concept0": {"label": "fish"}}).encode()))
    assert named_folder("eurlex15k", tmp_path / "data", made) == made
    assert with_label_names(EncodedParts.load(made), made)[1]["concept0"].forms == ("fish",)
    made.rename(tmp_path / "data" / "eurlex15k")
    assert named_folder("eurlex15k", tmp_path / "data", made) == tmp_path / "data" / "eurlex15k"


def test_preparing_eurlex_writes_the_names_beside_the_arrays(tmp_path):
    write_eurlex(tmp_path / "data")
    write_vectors(tmp_path / "data")
    concepts = {"concept0": {"label": "fish", "alt_labels": ["trout"], "parents": []}}
    path = tmp_path / "data" / "eurlex57k" / "eurovoc.json.gz"
    path.write_bytes(gzip.compress(json.dumps(concepts).encode()))
    done = CliRunner().invoke(app, ["prepare", str(tmp_path / "data"), str(tmp_path / "out"), "eurlex15k"])
    assert "with label names" in done.output
    folder = tmp_path / "out" / "eurlex15k"
    _, thesaurus = with_label_names(EncodedParts.load(folder), folder)
    assert thesaurus["concept0"].forms == ("fish", "trout")
    assert json.loads((folder / "unseen-labels.json").read_text()) == {"select": [], "report": []}
