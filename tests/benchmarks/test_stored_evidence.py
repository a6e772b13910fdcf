"""What was found out about documents before is looked up by their tokens."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_data import tiny_cell, tiny_parts

from benchmarks import run_labels as run_labels_module
from benchmarks.run_cell import run_cell
from benchmarks.run_labels import training_data
from benchmarks.stored_evidence import StoredEvidence, evidence_path, store_evidence
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES
from nlpcapsule.training import fit_labels as fit_module
from nlpcapsule.training.preparation import tuned

CELL = tiny_cell("hybrid")


@pytest.fixture
def data(tmp_path):
    parts = tiny_parts()
    parts.save(tmp_path / "data" / "letters")
    store_evidence(
        training_data(parts),
        parts,
        "one-vs-rest",
        evidence_path(tmp_path / "data" / "letters", "one-vs-rest"),
    )
    return tmp_path / "data"


def test_candidates_and_what_is_known_of_them_are_found_by_the_document(data):
    parts = tiny_parts().cut(10)
    stored = StoredEvidence.load(evidence_path(data / "letters", "one-vs-rest"), parts)
    rows = [3, 0, 5]
    asked = parts.report.tokens.take(rows)
    labels, log_odds = stored.top(asked, CANDIDATES)
    assert labels.shape == log_odds.shape == (3, len(parts.labels))  # fewer labels than places
    assert (np.diff(log_odds, axis=1) <= 0).all()
    assert np.isfinite(log_odds).all()
    every = stored.top(parts.report.tokens, CANDIDATES)[0]
    assert np.array_equal(labels, every[rows])
    shares, nearest = stored.shares(asked, labels)
    assert shares.shape == labels.shape
    assert ((nearest > 0) & (nearest <= 1.001)).all()


@pytest.mark.parametrize("count", [4, 199, 201, 400])
def test_fewer_or_more_candidates_than_were_stored_are_refused(data, count):
    parts = tiny_parts()
    stored = StoredEvidence.load(evidence_path(data / "letters", "one-vs-rest"), parts)
    with pytest.raises(ConfigError, match=rf"candidates for each document, and {count} are wanted"):
        stored.top(parts.report.tokens, count)


def test_a_cell_that_wants_other_candidates_than_were_stored_is_refused(data, tmp_path):
    other = replace(CELL, settings={**CELL.settings, "inference.candidates": 5})
    with pytest.raises(ConfigError, match=r"5 are wanted: set inference\.candidates=0"):
        run_cell(other, data, tmp_path / "cells", "")


def test_a_cell_with_stored_evidence_trains_no_lexical_system(data, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_module, "fit_evidence", lambda *_: pytest.fail("found out anew"))
    record = run_cell(CELL, data, tmp_path / "cells", "")
    assert record.figures["documents"] == 24


def test_evidence_on_other_documents_is_refused(data):
    parts = tiny_parts()
    fewer = replace(parts, report=parts.report.take([0, 1]))
    with pytest.raises(DataError, match="not on those of this data set"):
        StoredEvidence.load(evidence_path(data / "letters", "one-vs-rest"), fewer)


def test_a_part_of_the_training_documents_has_a_file_of_its_own(tmp_path):
    assert evidence_path(tmp_path, "omikuji", 0.5).name == "evidence-omikuji-50percent.safetensors"
    assert evidence_path(tmp_path, "omikuji").name == "evidence-omikuji.safetensors"


def test_the_network_is_also_measured_without_the_words(data, tmp_path):
    record = run_cell(CELL, data, tmp_path / "cells", "")
    assert record.network_only["documents"] == 24
    settings = {key: value for key, value in CELL.settings.items() if key != "lexical"}
    alone = replace(CELL, model="label-query", settings=settings)
    measured = run_cell(alone, data, tmp_path / "cells", "")
    assert measured.network_only is None
    # The same network, trained on the same documents: words have no part in how it learns.
    for figure in ("P@1", "ECE@5", "micro-F1", "macro-F1"):
        assert record.network_only[figure] == pytest.approx(measured.figures[figure])


def test_the_network_alone_decides_by_a_threshold_of_its_own(data, tmp_path, monkeypatch):
    seen = []

    def noted(model, rankings, documents):
        model = tuned(model, rankings, documents)
        seen.append((rankings.scores, documents, model.threshold))
        return model

    monkeypatch.setattr(run_labels_module, "tuned", noted)
    record = run_cell(CELL, data, tmp_path / "cells", "")
    ((scores, documents, threshold),) = seen
    assert record.network_only["threshold"] == threshold
    assert documents.fingerprint() == tiny_parts().select.fingerprint()
    assert scores.min() <= threshold <= scores.max()
