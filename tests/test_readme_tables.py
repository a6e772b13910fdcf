"""Every table of the README is what the files in results/ say."""

import json
from pathlib import Path

import pytest

from nlpcapsule.experiments.readme import with_tables

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_tables_are_those_of_the_results_files():
    assert with_tables(README, ROOT / "results") == README, "run `python -m nlpcapsule.experiments readme`"


@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("*.json")), ids=lambda path: path.stem)
def test_results_say_where_they_come_from(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    assert {"command", "commit", "data", "hardware", "nlpcapsule"} <= record.keys()
    assert f"<!-- results: {path.stem} -->" in README
