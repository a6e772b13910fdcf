"""TREC QA: questions to train on, to select on and to report on."""

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_data import tiny_answers, write_trecqa, write_tsv, write_vectors

from benchmarks import answer_data
from benchmarks.answer_data import answer_parts
from nlpcapsule.errors import DataError
from nlpcapsule.sample import load_questions

REAL_DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(answer_data, "SELECTED_ON", 5)
    write_trecqa(tmp_path)
    write_vectors(tmp_path)
    return tmp_path


def texts(questions):
    return [question.text for question in questions]


def test_questions_to_select_on_are_taken_out_of_the_training_part(data):
    parts = answer_parts("trecqa", data)
    assert (len(parts.train), len(parts.select)) == (15, 5)
    assert sorted(texts(parts.train + parts.select)) == sorted(texts(load_questions("train")[:20]))
    assert texts(answer_parts("trecqa", data).select) == texts(parts.select)  # seeded


def test_figures_are_of_both_versions_of_dev(data):
    report = answer_parts("trecqa", data).report
    assert {part: texts(questions) for part, questions in report.items()} == {
        "dev-clean": texts(load_questions("dev")[:6]),
        "dev-raw": texts(load_questions("dev")[:8]),
    }
    expected = load_questions("dev")[0].candidates
    found = report["dev-clean"][0].candidates
    assert [(row.text, row.label) for row in found] == [(row.text, row.label) for row in expected]


def test_nothing_is_trained_or_selected_on_report_questions(data):
    before = answer_parts("trecqa", data)
    for part in ("dev-clean", "dev-raw"):
        write_tsv(data / "trecqa" / f"{part}.tsv.gz", load_questions("test")[:3])
    after = answer_parts("trecqa", data)
    assert (after.train, after.select) == (before.train, before.select)
    assert after.fingerprint() != before.fingerprint()


def test_a_pretrained_transformer_is_found_beside_the_data(data):
    assert answer_parts("trecqa", data).encoder is None
    (data / "all-MiniLM-L6-v2").mkdir()
    assert answer_parts("trecqa", data).encoder == data / "all-MiniLM-L6-v2"


def test_the_sample_needs_no_folder():
    parts = answer_parts("sample", None)
    assert (parts.train, parts.select) == (load_questions("train"), load_questions("dev"))
    assert parts.report == {"test": load_questions("test")}
    assert parts.vectors is None


def test_the_fingerprint_sees_a_changed_label():
    parts = tiny_answers()
    question, *others = parts.train
    candidate, *rest = question.candidates
    marked = replace(question, candidates=(replace(candidate, label=1 - candidate.label), *rest))
    assert replace(parts, train=[question, *others]).fingerprint() == parts.fingerprint()
    assert replace(parts, train=[marked, *others]).fingerprint() != parts.fingerprint()


@pytest.mark.parametrize("place", ["empty", None])
def test_a_folder_without_the_data_is_refused(tmp_path, place):
    with pytest.raises(DataError, match="expected a folder that holds trecqa/: name it with --data"):
        answer_parts("trecqa", tmp_path if place else None)


@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="the real data do not lie beside the repository")
def test_the_real_trecqa_has_the_known_sizes():
    parts = answer_parts("trecqa", REAL_DATA)
    assert (len(parts.train), len(parts.select)) == (1_079, 150)
    assert {part: len(questions) for part, questions in parts.report.items()} == {
        "dev-clean": 65,
        "dev-raw": 81,
    }
