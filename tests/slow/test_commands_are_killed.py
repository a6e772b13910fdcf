"""kill -9 at random moments: outputs are whole or absent, no process stays, the next run tidies up."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_commands import Commands

from nlpcapsule.sample import write_sample

pytestmark = pytest.mark.slow

TINY = [
    "--set=embedding_size=8",
    "--set=filters=8",
    "--set=capsule_size=8",
    "--set=condensed=4",
    "--set=epochs=1",
]
ROWS, TIMES = 100, 20  # rows of the training file, and how often `predict` gets each


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rows = write_sample(folder / "sample")["documents-train"].read_text(encoding="utf-8").splitlines(True)
    parts = {"train": rows[:ROWS], "dev": rows[ROWS : ROWS + 20], "test": rows[ROWS + 20 : ROWS + 40]}
    (folder / "mine").mkdir()
    for name, part in parts.items():
        (folder / "mine" / f"{name}.jsonl").write_text("".join(part), encoding="utf-8")
    return folder / "mine"


@pytest.fixture(scope="module")
def model(commands: Commands, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    commands.finish("train", data / "train.jsonl", "--output", folder, *TINY)
    return folder


def kill_often(
    commands: Commands, words: list[object], output: Path, count: int, check: Callable[[str], None]
) -> None:
    """Kill a command at random moments, every other time near its end, where it writes."""
    seconds = commands.finish(*words)
    check(output.read_text(encoding="utf-8"))
    output.unlink()
    generator = random.Random(output.name)
    for trial in range(count):
        share = generator.random() if trial % 2 else generator.uniform(0.7, 1.05)
        commands.kill(seconds * share, *words)
        if output.exists():
            check(output.read_text(encoding="utf-8"))
            output.unlink()
    commands.finish(*words)
    assert [path.name for path in output.parent.iterdir()] == [output.name]
    check(output.read_text(encoding="utf-8"))


def test_predict(commands: Commands, model: Path, data: Path, tmp_path: Path, kills: int) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text((data / "train.jsonl").read_text(encoding="utf-8") * TIMES, encoding="utf-8")
    output = tmp_path / "out" / "ranked.jsonl"

    def check(text: str) -> None:
        assert len([json.loads(line) for line in text.splitlines()]) == ROWS * TIMES

    kill_often(commands, ["predict", model, rows, "--output", output], output, kills, check)


def test_evaluate(commands: Commands, model: Path, data: Path, tmp_path: Path, kills: int) -> None:
    output = tmp_path / "out" / "figures.json"

    def check(text: str) -> None:
        assert json.loads(text)["documents"] == ROWS

    words = ["evaluate", model, data / "train.jsonl", "--json", output]
    kill_often(commands, words, output, kills, check)


def test_compare(commands: Commands, data: Path, tmp_path: Path, kills: int) -> None:
    settings = [f"--set=label-query.{setting.removeprefix('--set=')}" for setting in TINY]
    words = ["compare", "--data", data, "--systems", "one-vs-rest,label-query", "--jobs", 2, *settings]
    seconds = commands.finish(*words, "--output", tmp_path / "whole")
    generator = random.Random("compare")
    output = tmp_path / "0"
    for number in range(max(1, round(kills / 4))):
        if (output / "compare.json").exists():  # all is done: begin another comparison
            output = tmp_path / str(number)
        commands.kill(generator.uniform(0, seconds), *words, "--output", output)
        for path in output.rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"))
    commands.finish(*words, "--output", output)
    assert figures(output) == figures(tmp_path / "whole")


def figures(output: Path) -> dict[str, dict[str, float]]:
    """The accuracies of each system in a finished comparison."""
    systems = json.loads((output / "compare.json").read_text(encoding="utf-8"))["systems"]
    assert len(systems) == 2
    return {name: row["figures"] for name, row in systems.items()}
