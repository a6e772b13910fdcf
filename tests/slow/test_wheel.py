"""What people install: the wheel, alone in an empty environment, outside of the checkout."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def run(*command, cwd=None):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    for what in ("--wheel", "--sdist"):
        run(sys.executable, "-m", "build", what, "--no-isolation", "--outdir", folder, ROOT)
    return folder


def test_the_wheel_has_the_package_alone(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        tops = {name.partition("/")[0] for name in files.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"nlpcapsule"}


def test_the_source_distribution_has_the_benchmarks(built):
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {
        "benchmarks/__main__.py",
        "benchmarks/plans/main-table.toml",
        "src/nlpcapsule/__init__.py",
    } <= names


def test_wheel_in_an_empty_environment_runs_the_demo(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    binaries = tmp_path / "venv" / "bin"
    pip = [binaries / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
    run(*pip, "torch")  # first and alone, as the Makefile does
    run(*pip, wheel)
    printed = run(binaries / "nlpcapsule", "demo", "--quiet", "--output", "demo", cwd=tmp_path)
    assert "hybrid" in printed
    figures = json.loads((tmp_path / "demo" / "results.json").read_text())
    seen = figures["labels"]["phrasings seen in training"]
    assert seen["hybrid"]["P@1"] >= 0.85
    assert (tmp_path / "demo" / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
