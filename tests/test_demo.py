"""The demo on a small part of the sample, with small networks."""

import json
import re

import pytest

from nlpcapsule import demo

SMALL = {"training.epochs": 1, "filters": 8, "embedding_size": 16}


@pytest.fixture
def small_demo(monkeypatch):
    capsules = SMALL | {"capsule_size": 8, "condensed": 8}
    monkeypatch.setattr(demo, "LABEL_SYSTEMS", {"kim-cnn": SMALL, "hybrid": capsules})
    monkeypatch.setattr(demo, "ANSWER_SYSTEMS", {"label-query": capsules})
    documents, questions = demo.load_documents, demo.load_questions
    monkeypatch.setattr(demo, "load_documents", lambda part: documents(part)[:80])
    monkeypatch.setattr(demo, "load_questions", lambda part: questions(part)[:12])


def test_demo_prints_tables_and_examples_and_writes_everything(small_demo, tmp_path, capsys):
    figures = demo.run_demo(tmp_path, quiet=True, compare=True)
    printed = capsys.readouterr().out
    for title in ("phrasings seen in training", "phrasings training never saw", "Answers"):
        assert title in printed
    assert printed.count("its labels:") == 3
    assert json.loads((tmp_path / "results.json").read_text()) == figures
    assert {"command", "commit", "data", "seeds", "hardware"} <= figures.keys()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert (tmp_path / "data" / "documents-train.jsonl").exists()


def test_demo_trains_the_default_alone_unless_it_is_to_compare(small_demo, tmp_path, capsys):
    figures = demo.run_demo(tmp_path, quiet=True)
    assert [list(rows) for rows in figures["labels"].values()] == [["hybrid"], ["hybrid"]]
    assert list(figures["answers"]) == ["label-query"]
    printed = capsys.readouterr().out
    assert "kim-cnn" not in printed
    assert printed.count("its labels:") == 3
    assert len(re.findall(r"^  \d\.\d\d( \(right\))?  \S", printed, re.MULTILINE)) == 6  # two questions


def test_demo_keeps_what_it_has_trained_unless_settings_change(small_demo, tmp_path, monkeypatch):
    def weights():
        paths = sorted((tmp_path / "models").glob("*/network.safetensors"))
        return {path.parent.name: path.stat().st_mtime_ns for path in paths}

    demo.run_demo(tmp_path, quiet=True, compare=True)
    first = weights()
    demo.run_demo(tmp_path, quiet=True, compare=True)
    assert weights() == first
    changed = {**demo.LABEL_SYSTEMS, "kim-cnn": SMALL | {"filters": 4}}
    monkeypatch.setattr(demo, "LABEL_SYSTEMS", changed)
    demo.run_demo(tmp_path, quiet=True, compare=True)
    assert {name for name, time in weights().items() if time != first[name]} == {"kim-cnn"}


def test_demo_trains_again_what_an_older_version_left(small_demo, tmp_path):
    demo.run_demo(tmp_path, quiet=True)
    manifest = tmp_path / "models" / "hybrid" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": 2', '"format_version": 1'))
    demo.run_demo(tmp_path, quiet=True)
    assert '"format_version": 2' in manifest.read_text()
