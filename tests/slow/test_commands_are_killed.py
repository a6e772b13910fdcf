"""kill -9 at random moments: outputs are whole or absent, no process stays, the next run tidies up."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from nlpcapsule.sample import write_sample

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="there is no kill -9 here")]

TINY = [
    "--set=embedding_size=8",
    "--set=filters=8",
    "--set=capsule_size=8",
    "--set=condensed=4",
    "--set=epochs=1",
]
MARK = "NLPCAPSULE_KILL_TEST"


class Command:
    """A command that is killed again and again, and its processes, told by a variable that they inherit."""

    def __init__(self, *arguments: object) -> None:
        self.words = [sys.executable, "-m", "nlpcapsule", *map(str, arguments)]
        self.mark = uuid.uuid4().hex

    def start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, MARK: self.mark}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(self.words, env=environment, **quiet)  # type: ignore[call-overload]

    def finish(self) -> float:
        """Run it to its end; return the seconds that it took."""
        started = time.monotonic()
        assert self.start().wait(300) == 0
        return time.monotonic() - started

    def kill_after(self, seconds: float) -> None:
        process = self.start()
        time.sleep(seconds)
        process.kill()
        process.wait()

    def processes(self) -> list[list[str]]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.cmdline())
            except psutil.Error:
                continue
        return found

    def assert_no_process_stays(self) -> None:
        end = time.monotonic() + 20
        while self.processes() and time.monotonic() < end:
            time.sleep(0.1)
        assert self.processes() == []


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rows = write_sample(folder / "sample")["documents-train"].read_text(encoding="utf-8").splitlines(True)
    for name, part in {"train": rows[:200], "dev": rows[200:240], "test": rows[240:280]}.items():
        (folder / "mine").mkdir(exist_ok=True)
        (folder / "mine" / f"{name}.jsonl").write_text("".join(part), encoding="utf-8")
    return folder / "mine"


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    Command("train", data / "train.jsonl", "--output", folder, *TINY).finish()
    return folder


def kill_often(command: Command, output: Path, count: int, check: Callable[[str], None]) -> None:
    """Kill a command at random moments, the later half of them near its end, where it writes."""
    seconds = command.finish()
    check(output.read_text(encoding="utf-8"))
    output.unlink()
    generator = random.Random(output.name)
    for trial in range(count):
        command.kill_after(seconds * (generator.random() if trial % 2 else generator.uniform(0.7, 1.05)))
        if output.exists():
            check(output.read_text(encoding="utf-8"))
            output.unlink()
        command.assert_no_process_stays()
    command.finish()
    assert [path.name for path in output.parent.iterdir() if path.name.endswith(".part")] == []
    check(output.read_text(encoding="utf-8"))


def test_predict(model: Path, data: Path, tmp_path: Path, kills: int) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text((data / "train.jsonl").read_text(encoding="utf-8") * 20, encoding="utf-8")
    output = tmp_path / "out" / "ranked.jsonl"

    def check(text: str) -> None:
        assert len([json.loads(line) for line in text.splitlines()]) == 4_000

    kill_often(Command("predict", model, rows, "--output", output), output, kills, check)


def test_evaluate(model: Path, data: Path, tmp_path: Path, kills: int) -> None:
    output = tmp_path / "out" / "figures.json"

    def check(text: str) -> None:
        assert json.loads(text)["documents"] == 200

    command = Command("evaluate", model, data / "train.jsonl", "--json", output)
    kill_often(command, output, kills, check)


def test_compare(data: Path, tmp_path: Path, kills: int) -> None:
    output = tmp_path / "comparison"
    settings = [f"--set=label-query.{setting.removeprefix('--set=')}" for setting in TINY]
    command = Command(
        *("compare", "--data", data, "--systems", "one-vs-rest,label-query", "--output", output, "--jobs", 2),
        *settings,
    )
    generator = random.Random("compare")
    for _ in range(kills):
        command.kill_after(generator.uniform(1, 15))
        command.assert_no_process_stays()
        for path in output.rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"))
    command.finish()
    figures = json.loads((output / "compare.json").read_text(encoding="utf-8"))
    assert "one-vs-rest" in json.dumps(figures)
    assert "label-query" in json.dumps(figures)
