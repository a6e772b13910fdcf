"""The demo on a small part of the sample, with small networks."""

import io
import json
import re
import shutil
from contextlib import redirect_stdout

import pytest

from nlpcapsule import demo

SMALL = {"training.epochs": 1, "filters": 8, "embedding_size": 16}


@pytest.fixture(scope="module", autouse=True)
def small_demo():
    capsules = SMALL | {"capsule_size": 8, "condensed": 8}
    documents, questions = demo.load_documents, demo.load_questions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "LABEL_SYSTEMS", {"kim-cnn": SMALL, "hybrid": capsules})
        patch.setattr(demo, "ANSWER_SYSTEMS", {"label-query": capsules})
        patch.setattr(demo, "load_documents", lambda part: documents(part)[:60])
        patch.setattr(demo, "load_questions", lambda part: questions(part)[:12])
        yield


@pytest.fixture(scope="module")
def compared(small_demo, tmp_path_factory):
    """The folder of a demo with all systems, its figures and what it printed."""
    folder, printed = tmp_path_factory.mktemp("demo"), io.StringIO()
    with redirect_stdout(printed):
        figures = demo.run_demo(folder, quiet=True, compare=True)
    return folder, figures, printed.getvalue()


@pytest.fixture
def folder(compared, tmp_path):
    return shutil.copytree(compared[0], tmp_path / "demo")


def weights(folder):
    paths = sorted((folder / "models").glob("*/network.safetensors"))
    return {path.parent.name: path.stat().st_mtime_ns for path in paths}


def test_demo_prints_tables_and_examples_and_writes_everything(compared):
    folder, figures, printed = compared
    for title in ("phrasings seen in training", "phrasings training never saw", "Answers"):
        assert title in printed
    assert printed.count("its labels:") == 3
    assert json.loads((folder / "results.json").read_text()) == figures
    assert {"command", "commit", "data", "seeds", "hardware"} <= figures.keys()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert (folder / "data" / "documents-train.jsonl").exists()


def test_demo_uses_the_default_alone_unless_it_is_to_compare(folder, capsys):
    figures = demo.run_demo(folder, quiet=True)
    assert [list(rows) for rows in figures["labels"].values()] == [["hybrid"], ["hybrid"]]
    assert list(figures["answers"]) == ["label-query"]
    printed = capsys.readouterr().out
    assert "kim-cnn" not in printed
    assert printed.count("its labels:") == 3
    assert len(re.findall(r"^  \d\.\d\d( \(right\))?  \S", printed, re.MULTILINE)) == 6  # two questions


def test_demo_keeps_what_it_has_trained_unless_settings_change(folder, monkeypatch):
    first = weights(folder)
    changed = {**demo.LABEL_SYSTEMS, "kim-cnn": SMALL | {"filters": 4}}
    monkeypatch.setattr(demo, "LABEL_SYSTEMS", changed)
    demo.run_demo(folder, quiet=True, compare=True)
    assert {name for name, time in weights(folder).items() if time != first[name]} == {"kim-cnn"}


def test_demo_trains_again_what_an_older_version_left(folder):
    manifest = folder / "models" / "hybrid" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format_version": 2', '"format_version": 1'))
    demo.run_demo(folder, quiet=True)
    assert '"format_version": 2' in manifest.read_text()
