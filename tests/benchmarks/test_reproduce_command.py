"""`nlpcapsule reproduce`: wrong arguments are refused before anything is trained or written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from nlpcapsule.cli.reproduce import TableName
from nlpcapsule.experiments import run_cells
from nlpcapsule.experiments.reproduce import TABLES
from nlpcapsule.experiments.table import Options
from run_command import assert_refused, run_command


@pytest.fixture
def no_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_cells, "run_cell", lambda *_: pytest.fail("a cell was run"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["main-tabel", "--budget", "smoke"], "'main-tabel' is not one of 'main-table', 'low-resource'"),
        (["main-table", "--budget", "smok"], "'smok' is not one of 'smoke', 'full'"),
        (["main-table", "--budget", "smoke", "--system", "XML-CN"], r"did you mean 'XML-CNN'\?"),
        (["answer-selection", "--budget", "smoke", "--system", "BM52"], r"did you mean 'BM25'\?"),
        (["main-table", "--budget", "smoke", "--seeds", "0"], "--seeds"),
        (["main-table", "--budget", "smoke", "--jobs", "-1"], "--jobs"),
        (["main-table", "--budget", "smoke", "--no-run"], "no cell of main-table is finished"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: list[str], message: str, tmp_path: Path, no_cells: None
) -> None:
    out = tmp_path / "out"
    assert_refused(run_command("reproduce", *arguments, "--out", out), message)
    assert not out.exists()


@pytest.mark.parametrize("table", ["main-table", "low-resource", "routing-comparison", "answer-selection"])
def test_the_full_budget_needs_real_data(table: str, tmp_path: Path, no_cells: None) -> None:
    done = run_command("reproduce", table, "--out", tmp_path / "out")
    assert_refused(done, "--budget full needs real data: say with --data where they lie, or use smoke")


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    arguments = ["main-table", "--data", tmp_path, "--out", tmp_path / "out", "--system", "one-vs-rest"]
    done = run_command("reproduce", *arguments, "--quiet")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert (
        f"one-vs-rest on eurlex15k, seed 1: {tmp_path}: expected a folder that holds eurlex57k/" in done.err
    )


def test_the_command_offers_the_tables_there_are() -> None:
    assert set(TableName) == TABLES.keys()
    done = run_command("reproduce", "--help")
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert all(name in text for name in TABLES)


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["main-tabel"], 2)])
def test_help_and_unknown_tables_do_not_wait_for_torch(arguments: list[str], code: int) -> None:
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch imported:', 'torch' in sys.modules))\n"
        "from nlpcapsule.cli.app import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "reproduce", *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code
    assert done.stdout.endswith("torch imported: False\n")


def test_a_table_is_written_as_json_markdown_and_pictures(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["answer-selection", "--budget", "smoke", "--system", "BM25", "--commit", "abc123"]
    done = run_command("reproduce", *arguments, "--out", out)
    assert done.code == 0, done.err
    page = (out / "answer-selection.md").read_text(encoding="utf-8")
    assert done.out.strip() == page.strip()
    assert "![answer-selection-sample](answer-selection-sample.svg)" in page
    assert (out / "answer-selection-sample.svg").exists()
    record = json.loads((out / "answer-selection.json").read_text(encoding="utf-8"))
    assert record["results"]["sample"]["1"].keys() == {"BM25"}
    assert record["commit"] == "abc123"
    assert "1 of 1 cells are finished" in run_command("reproduce", *arguments, "--out", out).err
    assert list((Options(out, budget="smoke").cells / "sample").glob("bm25-*-seed1.json"))
