"""The README's own commands do what the README says."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nlpcapsule.sample import write_sample

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


def block_after(heading, language=""):
    return re.search(rf"## {re.escape(heading)}\n.*?```{language}\n(.*?)```", README, re.DOTALL)[1]


def test_from_the_command_line(tmp_path):
    write_sample(tmp_path / "demo-output" / "data")  # as `make demo` does
    lines = block_after("From the command line").splitlines()
    assert len(lines) == 5
    printed = {}
    for line in lines:
        command = line.replace("nlpcapsule ", f"{shlex.quote(sys.executable)} -m nlpcapsule.cli.app ", 1)
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        printed[line.split()[1]] = done.stdout
    assert json.loads((tmp_path / "figures.json").read_text())["P@1"] > 0.9
    shown = json.loads(block_after("From the command line", "json"))
    found = json.loads(printed["predict"])
    assert found.keys() == shown.keys()
    assert found["labels"][0]["label"] == shown["labels"][0]["label"]
    assert "bm25" in printed["systems"]


def test_from_python(tmp_path):
    code = block_after("From Python", "python")
    assert len([line for line in code.splitlines() if line.strip()]) == 8
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "expected:" in done.stdout
    assert (tmp_path / "my-model" / "manifest.json").exists()
