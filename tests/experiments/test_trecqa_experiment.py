"""Answer rankers on a data set in TREC QA's layout: select on one part, report on two others."""

import gzip
import json

import numpy as np
import pytest
from tiny_comparison import write_plan
from typer.testing import CliRunner

from nlpcapsule.errors import DataError
from nlpcapsule.experiments import trecqa
from nlpcapsule.experiments.__main__ import app
from nlpcapsule.sample import load_questions

SETTINGS = {"filters": 4, "capsule_size": 4, "condensed": 3, "epochs": 1, "max_tokens": 16}
SYSTEMS = {"small": {"model": "label-query", "settings": SETTINGS}}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(trecqa, "SELECTED_ON", 5)
    (tmp_path / "trecqa").mkdir()
    (tmp_path / "vectors").mkdir()
    for part, questions in {
        "train-all": load_questions("train")[:20],
        "dev-raw": load_questions("dev")[:8],
        "dev-clean": load_questions("dev")[:6],
    }.items():
        rows = [
            f"{number}\t{question.text}\t{candidate.text}\t{candidate.label}\n"
            for number, question in enumerate(questions)
            for candidate in question.candidates
        ]
        with gzip.open(tmp_path / "trecqa" / f"{part}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(["qid\tquestion\tanswer\tlabel\n", *rows])
    with gzip.open(tmp_path / "vectors" / "glove.6B.100d.trimmed.txt.gz", "wt", encoding="utf-8") as file:
        file.write("the " + " ".join(["0.5"] * 10) + "\n")
    return tmp_path


def test_every_system_is_trained_with_every_seed_and_reported_on_both_parts(data):
    results, fingerprint = trecqa.run_trecqa(data, SYSTEMS, [1, 2])
    runs = results["small"]["runs"]
    assert [run["seed"] for run in runs] == [1, 2]
    assert all(run["selected on"]["questions"] == 5 for run in runs)
    assert {part: run["questions"] for part, run in runs[0]["report"].items()} == {
        "dev-clean": 6,
        "dev-raw": 8,
    }
    mean = results["small"]["mean"]["dev-raw"]["MAP"]
    assert mean == pytest.approx(np.mean([run["report"]["dev-raw"]["MAP"] for run in runs]))
    assert str(data) not in json.dumps(results)  # no place on this machine is written down
    again, same = trecqa.run_trecqa(data, SYSTEMS, [1])
    assert same == fingerprint
    assert again["small"]["runs"][0]["report"] == runs[0]["report"]


def test_the_command_line_writes_a_results_file(data):
    settings = ", ".join(f'"{key}" = {value}' for key, value in SETTINGS.items())
    text = f'[[systems]]\nname = "small"\nmodel = "label-query"\nsettings = {{ {settings} }}\n'
    plan, out = write_plan(data / "plan.toml", text), data / "out.json"
    result = CliRunner().invoke(app, ["trecqa", str(data), str(plan), str(out), "--seeds", "3"])
    assert result.exit_code == 0, result.exception
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["seeds"] == [3]
    assert record["command"].startswith("python -m nlpcapsule.experiments")
    assert {"commit", "data", "hardware", "nlpcapsule", "systems"} <= record.keys()


def test_a_folder_without_the_data_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a folder that holds trecqa/"):
        trecqa.run_trecqa(tmp_path, SYSTEMS, [1])
