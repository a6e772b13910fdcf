"""`python -m benchmarks reproduce`: wrong arguments are refused before anything is trained or written."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from run_command import assert_refused, run_command

from benchmarks import run_cells
from benchmarks.__main__ import main
from benchmarks.reproduce import TABLES
from benchmarks.reproduce_command import TableName
from benchmarks.table import Options

run_benchmarks = partial(run_command, entry_point=main)


@pytest.fixture
def no_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_cells, "run_cell", lambda *_: pytest.fail("a cell was run"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["main-tabel", "--budget", "smoke"], "'main-tabel' is not one of 'main-table', 'low-resource'"),
        (["main-table", "--budget", "smok"], "'smok' is not one of 'smoke', 'full'"),
        (["main-table", "--budget", "smoke", "--systems", "XML-CN"], r"did you mean 'XML-CNN'\?"),
        (["answer-selection", "--budget", "smoke", "--systems", "BM52"], r"did you mean 'BM25'\?"),
        (["main-table", "--budget", "smoke", "--seeds", "0"], "--seeds"),
        (["main-table", "--budget", "smoke", "--jobs", "-1"], "--jobs"),
        (["main-table", "--budget", "smoke", "--no-run"], "no cell of main-table is finished"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: list[str], message: str, tmp_path: Path, no_cells: None
) -> None:
    out = tmp_path / "out"
    assert_refused(run_benchmarks("reproduce", *arguments, "--output", out), message)
    assert not out.exists()


@pytest.mark.parametrize("table", ["main-table", "low-resource", "routing-comparison", "answer-selection"])
def test_the_full_budget_needs_real_data(table: str, tmp_path: Path, no_cells: None) -> None:
    done = run_benchmarks("reproduce", table, "--output", tmp_path / "out")
    assert_refused(done, "--budget full needs real data: give its folder with --data, or use --budget smoke")


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    arguments = ["main-table", "--data", tmp_path, "--output", tmp_path / "out", "--systems", "one-vs-rest"]
    done = run_benchmarks("reproduce", *arguments, "--quiet")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert (
        f"one-vs-rest on eurlex15k, seed 1: {tmp_path}: expected a folder that holds eurlex57k/" in done.err
    )


def test_the_command_offers_the_tables_there_are() -> None:
    assert set(TableName) == TABLES.keys()
    done = run_benchmarks("reproduce", "--help")
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert all(name in text for name in TABLES)


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["main-tabel"], 2)])
def test_help_and_unknown_tables_do_not_wait_for_torch(arguments: list[str], code: int) -> None:
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch imported:', 'torch' in sys.modules))\n"
        "from benchmarks.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "reproduce", *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code
    assert done.stdout.endswith("torch imported: False\n")


def test_a_table_is_written_as_json_markdown_and_pictures(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["answer-selection", "--budget", "smoke", "--systems", "BM25", "--commit", "abc123"]
    done = run_benchmarks("reproduce", *arguments, "--output", out)
    assert done.code == 0, done.err
    page = (out / "answer-selection.md").read_text(encoding="utf-8")
    assert done.out.strip() == page.strip()
    assert "![answer-selection-sample](answer-selection-sample.svg)" in page
    assert (out / "answer-selection-sample.svg").exists()
    record = json.loads((out / "answer-selection.json").read_text(encoding="utf-8"))
    assert record["results"]["sample"]["1"].keys() == {"BM25"}
    assert record["commit"] == "abc123"
    assert "1 of 1 cells are finished" in run_benchmarks("reproduce", *arguments, "--output", out).err
    assert list((Options(out, budget="smoke").cells / "sample").glob("bm25-*-seed1.json"))


def test_systems_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(run_cells, "run_cell", lambda cell, *_: ran.append(cell.system))
    wanted = ["--systems", "XML-CNN", "--systems", "CNN-Kim"]
    run_benchmarks("reproduce", "main-table", "--budget", "smoke", *wanted, "--output", tmp_path, "--quiet")
    assert sorted(ran) == ["CNN-Kim", "XML-CNN"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["readm"], "No such command 'readm'"),
        (["readme", "nowhere.md"], "nowhere.md"),
        (["prepare", "nowhere", "out", "reuters"], "nowhere: expected a folder that holds reuters21578/"),
        (["export", "nowhere", "reuter", "out"], "did you mean 'reuters'"),
        (["evidence", "nowhere", "reuters"], "nowhere: expected a folder that holds reuters21578/"),
        (["prepare"], "Missing argument"),
    ],
)
def test_every_command_refuses_with_one_message(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(run_benchmarks(*arguments), message)
