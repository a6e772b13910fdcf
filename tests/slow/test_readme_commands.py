"""The README's own commands do what the README says."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "service"))

from running import running

from nlpcapsule.sample import write_sample

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


def section(heading):
    return re.search(rf"## {re.escape(heading)}\n(.*?)\n## ", README, re.DOTALL)[1]


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

    served, *following = re.findall(
        r"^nlpcapsule (.*?)(?: +#.*)?$", section("In the browser, and in production"), re.MULTILINE
    )
    review = {"document_id": "1", "person": "ada", "text": "A beehive.", "accepted": ["beehive"]}
    with running(tmp_path / served.removeprefix("serve ")) as service:
        service.ask("/v1/feedback", json.dumps(review).encode())
        assert service.stop()[0] == 0
    for command in following:
        done = subprocess.run(
            [sys.executable, "-m", "nlpcapsule", *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "1 new label" in done.stderr


def test_from_python(tmp_path):
    code = block_after("From Python", "python")
    assert len([line for line in code.splitlines() if line.strip()]) == 8
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "expected:" in done.stdout
    assert (tmp_path / "small-model" / "manifest.json").exists()
