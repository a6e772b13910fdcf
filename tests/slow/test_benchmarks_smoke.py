"""Every table and figure can be made on the embedded sample, and what is finished is not made again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.plan import read_plan
from benchmarks.reproduce_command import TableName

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

WITH_PLAN = ("main-table", "low-resource", "routing-comparison", "paper-parts", "fusion", "answer-selection")


def reproduce(table, out):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "reproduce", table, "--budget", "smoke", "--output", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,  # against hanging: a busy machine may be slow
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def times_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("table", [table.value for table in TableName])
def test_a_table_is_made_on_the_sample_and_what_is_finished_is_kept(table, tmp_path):
    done = reproduce(table, tmp_path)
    page = (tmp_path / f"{table}.md").read_text(encoding="utf-8")
    assert done.stdout.strip() == page.strip()
    assert "not run" not in page
    assert "not measured" not in page
    pictures = list(tmp_path.glob("*.svg"))
    assert pictures or table == "cost"
    assert all(f"({picture.name})" in page for picture in pictures)
    record = json.loads((tmp_path / f"{table}.json").read_text(encoding="utf-8"))
    assert str(tmp_path) not in json.dumps(record)
    if table in WITH_PLAN:
        plan = read_plan(table, "smoke")
        for fraction in plan.fractions:
            systems = record["results"]["sample"][f"{fraction:g}"]
            assert list(systems) == [row["name"] for row in plan.systems]

    before = times_of(tmp_path / "cells")
    assert before
    again = reproduce(table, tmp_path)
    assert times_of(tmp_path / "cells") == before
    assert again.stdout == done.stdout
