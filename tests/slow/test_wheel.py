"""What people install: the wheel, alone in an empty environment, outside of the checkout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def run(*command, cwd=None):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_wheel_in_an_empty_environment_runs_the_demo(tmp_path):
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    pip = [binaries / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
    run(*pip, "torch")  # first and alone, as the Makefile does
    run(*pip, wheel)
    printed = run(binaries / "nlpcapsule", "demo", "--quiet", "--output", "demo", cwd=tmp_path)
    assert "label-query" in printed
    figures = json.loads((tmp_path / "demo" / "results.json").read_text())
    seen = figures["labels"]["phrasings seen in training"]
    assert seen["label-query"]["P@1"] >= 0.85
    assert (tmp_path / "demo" / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
