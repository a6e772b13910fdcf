"""The README's own commands do what the README says."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nlpcapsule.sample import load_documents

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


def block_after(heading, language=""):
    return re.search(rf"## {re.escape(heading)}.*?```{language}\n(.*?)```", README, re.DOTALL)[1]


def rows(part, count):
    return [{"text": d.text, "labels": list(d.labels)} for d in load_documents(part)[:count]]


def test_own_data_in_five_lines(tmp_path):
    for name, part, count in (("train", "train", 300), ("test", "test-seen", 40), ("new", "test-unseen", 7)):
        text = "".join(json.dumps(row) + "\n" for row in rows(part, count))
        (tmp_path / f"{name}.jsonl").write_text(text)
    lines = block_after("Your own data, in five lines").splitlines()
    assert len(lines) == 5
    for line in lines[1:]:
        line = line.replace("nlpcapsule ", f"{shlex.quote(sys.executable)} -m nlpcapsule.cli.app ", 1)
        line = line.replace("epochs=20", "epochs=2")
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert "P@1" in json.loads((tmp_path / "figures.json").read_text())
    tagged = [json.loads(line) for line in (tmp_path / "tags.jsonl").read_text().splitlines()]
    assert len(tagged) == 7
    assert all(len(row["labels"]) == 5 for row in tagged)


def test_python_in_eight_lines(tmp_path):
    code = block_after("Python, in eight lines", "python")
    assert len([line for line in code.splitlines() if line.strip()]) == 8
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "expected:" in done.stdout
    assert (tmp_path / "my-model" / "manifest.json").exists()
