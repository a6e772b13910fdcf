"""Cells are run once each, put together, and a comparison that was stopped goes on with what is missing."""

import json

import numpy as np
import pytest
from tiny_comparison import PLAN, tiny_parts, write_plan
from typer.testing import CliRunner

from nlpcapsule.errors import ConfigError, NlpCapsuleError
from nlpcapsule.experiments import cell as cell_module
from nlpcapsule.experiments import comparison
from nlpcapsule.experiments.__main__ import app
from nlpcapsule.experiments.cell import run_cell
from nlpcapsule.experiments.comparison import read_plan, run_cells, summarise, write_summary
from nlpcapsule.experiments.provenance import hardware


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoded")
    tiny_parts().save(folder)
    return folder


@pytest.fixture
def plan(tmp_path):
    return write_plan(tmp_path / "plan.toml")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two systems with two seeds each."""
    cells = tmp_path_factory.mktemp("cells")
    rows = read_plan(write_plan(cells / "plan.toml"))
    parts = tiny_parts()
    for row in rows[:2]:
        for seed in (1, 2):
            path = cells / f"{row['name']}-seed{seed}.json"
            run_cell(parts, row["name"], row["model"], row["settings"], seed, path)
    return cells


def test_a_cell_holds_all_that_is_needed_to_repeat_it(finished):
    record = json.loads((finished / "small-seed2.json").read_text(encoding="utf-8"))
    assert (record["system"], record["model"], record["seed"]) == ("small", "kim-cnn", 2)
    assert record["config"]["training"]["seed"] == 2
    assert record["config"]["model"]["filters"] == 4
    assert record["data"] == tiny_parts().fingerprint()
    assert record["hardware"] == hardware()
    assert [epoch["epoch"] for epoch in record["epochs"]] == [1, 2]
    assert record["figures"]["documents"] == 24
    assert record["selected on"]["documents"] == 20
    assert record["parameters"] > 0
    assert record["documents by routing iterations"] is None


def test_a_capsule_cell_counts_documents_by_routing_iterations(finished):
    record = json.loads((finished / "capsules-seed1.json").read_text(encoding="utf-8"))
    assert sum(record["documents by routing iterations"]) == 24


def test_figures_per_document_have_the_reported_means(finished):
    record = json.loads((finished / "small-seed1.json").read_text(encoding="utf-8"))
    per_document = np.load(finished / "small-seed1.npy", allow_pickle=False)
    assert per_document.shape == (4, 24)
    for row, name in enumerate(comparison.FIGURES):
        assert per_document[row].mean() == pytest.approx(record["figures"][name])


def test_a_finished_cell_is_only_read(finished, monkeypatch):
    monkeypatch.setattr(cell_module, "fit_labels", lambda *_: pytest.fail("trained again"))
    path = finished / "small-seed1.json"
    record = run_cell(tiny_parts(), "small", "kim-cnn", {}, 1, path)
    assert record == json.loads(path.read_text(encoding="utf-8"))


def test_the_missing_cells_are_run_and_failures_point_to_their_logs(data, plan, finished, tmp_path):
    cells = tmp_path / "cells"
    cells.mkdir()
    for suffix in (".json", ".npy"):
        name = f"small-seed1{suffix}"
        (cells / name).write_bytes((finished / name).read_bytes())
    before = (cells / "small-seed1.json").stat().st_mtime_ns
    with pytest.raises(
        NlpCapsuleError, match=r"cells failed:\nbroken, seed 1: see .*broken-seed1\.log"
    ) as failure:
        run_cells(data, plan, [1], cells, jobs=2)
    assert "capsules" not in str(failure.value)
    assert "unknown setting 'colour'" in (cells / "broken-seed1.log").read_text(encoding="utf-8")
    assert (cells / "small-seed1.json").stat().st_mtime_ns == before
    assert not (cells / "small-seed1.log").exists()
    # Another process, the same machine, the same seed: the same figures.
    here, there = (
        json.loads((folder / "capsules-seed1.json").read_text(encoding="utf-8"))
        for folder in (finished, cells)
    )
    assert here["figures"] == pytest.approx(there["figures"], abs=1e-6)


def test_a_summary_has_means_deviations_and_paired_tests(finished, tmp_path):
    summary = summarise(finished, "the command", "abc123")
    assert (summary["command"], summary["commit"]) == ("the command", "abc123")
    assert summary["systems"].keys() == {"small", "capsules"}
    small = summary["systems"]["small"]
    assert small["seeds"] == [1, 2]
    figures = [
        json.loads((finished / f"small-seed{seed}.json").read_text(encoding="utf-8"))["figures"]["P@5"]
        for seed in (1, 2)
    ]
    assert small["mean"]["P@5"] == pytest.approx(np.mean(figures))
    assert small["standard deviation"]["P@5"] == pytest.approx(np.std(figures))
    paired = summary["paired bootstrap (mean over seeds per document)"]
    assert paired.keys() == {"capsules - small"}
    difference = summary["systems"]["capsules"]["mean"]["P@5"] - small["mean"]["P@5"]
    assert difference == pytest.approx(paired["capsules - small"]["P@5"]["difference"])
    write_summary(summary, tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == summary


def test_nothing_cannot_be_put_together(tmp_path):
    with pytest.raises(NlpCapsuleError, match="no cells to put together"):
        summarise(tmp_path, "", "")


def test_a_plan_fills_in_settings(tmp_path):
    plan = write_plan(tmp_path / "plan.toml", '[[systems]]\nname = "a"\nmodel = "paper"\n')
    assert read_plan(plan) == [{"name": "a", "model": "paper", "settings": {}}]


@pytest.mark.parametrize("text", ["", "[[systems]]\nname = 'a'\n", "systems = 3", "not toml at all ["])
def test_what_is_no_plan_is_refused(tmp_path, text):
    with pytest.raises(ConfigError, match=r"plan\.toml: not a plan with \[\[systems\]\]"):
        read_plan(write_plan(tmp_path / "plan.toml", text))


def test_a_plan_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="not a plan"):
        read_plan(tmp_path / "nowhere.toml")


def test_an_unknown_system_is_refused(data, plan, tmp_path):
    with pytest.raises(ConfigError, match=r"there is no system 'smal'; did you mean 'small'\?"):
        run_cells(data, plan, [1], tmp_path / "cells", jobs=1, systems=["smal"])


def test_the_command_line_runs_one_cell(data, tmp_path):
    plan = write_plan(tmp_path / "plan.toml")
    result = CliRunner().invoke(app, ["cell", str(data), str(plan), "small", "3", str(tmp_path / "cells")])
    assert result.exit_code == 0, result.exception
    record = json.loads((tmp_path / "cells" / "small-seed3.json").read_text(encoding="utf-8"))
    assert record["seed"] == 3


def test_the_command_line_puts_finished_cells_together_without_running_any(
    data, finished, tmp_path, monkeypatch
):
    monkeypatch.setattr(comparison, "ThreadPoolExecutor", ThreadsThatMustStayIdle)
    plan = write_plan(tmp_path / "plan.toml", PLAN.partition('[[systems]]\nname = "broken"')[0])
    out = tmp_path / "results.json"
    options = ["--seeds", "1,2", "--cells", str(finished), "--systems", "small,capsules"]
    result = CliRunner().invoke(app, ["run", str(data), str(plan), str(out), *options])
    assert result.exit_code == 0, result.exception
    summary = json.loads(out.read_text(encoding="utf-8"))
    assert summary["systems"]["capsules"]["seeds"] == [1, 2]
    assert summary["commit"]


class ThreadsThatMustStayIdle:
    def __init__(self, jobs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def map(self, function, commands):
        assert commands == []
        return []
