"""Sharded prediction writes what one process writes, also if a process is killed at a random moment.

The moment differs from run to run. A failure tells the seed, which the variable of `SEED_VARIABLE` sets.
"""

from __future__ import annotations

import json
import math
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from nlpcapsule.model_folder import save_model
from tests.saved_models import TEXTS, label_model

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="there is no kill -9 here")]

SEED_VARIABLE = "NLPCAPSULE_KILL_SEED"
ROWS = 9_000  # more than two chunks for each of two shards


@pytest.fixture(scope="module")
def prediction(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """A model, rows to rank, and what one process writes."""
    folder = tmp_path_factory.mktemp("sharded")
    save_model(label_model(), folder / "model")
    rows = folder / "rows.jsonl"
    texts = (f"{TEXTS[row % len(TEXTS)]} {'snow ' * (row % 7)}" for row in range(ROWS))
    rows.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(texts)))
    assert predict(folder / "model", rows, folder / "one.jsonl") == 0
    expected = (folder / "one.jsonl").read_bytes()
    assert [json.loads(line)["id"] for line in expected.splitlines()] == [str(row) for row in range(ROWS)]
    return folder / "model", rows, expected


def predict(model: Path, rows: Path, output: Path, *options: str) -> int:
    words = ["predict", str(model), str(rows), "--output", str(output), "--top-k", "3", *options]
    return subprocess.run([sys.executable, "-P", "-m", "nlpcapsule", *words], check=False).returncode


def is_shard_worker(process: psutil.Process) -> bool:
    """The process that ranks a shard, which our own code starts again."""
    return "nlpcapsule.sharding.worker" in process.cmdline()


def is_busy_ray_worker(process: psutil.Process) -> bool:
    """The process in which Ray runs the task of a shard: Ray starts another one and the task again."""
    is_child_of_raylet = (parent := process.parent()) is not None and parent.name() == "raylet"
    return is_child_of_raylet and process.cmdline()[:1] == ["ray::_run"]


class Killer(threading.Thread):
    """Kills one process of a prediction some time after the first of its kind has appeared.

    Without a moment, it only measures how long there are such processes.
    """

    def __init__(self, is_victim: Callable[[psutil.Process], bool], moment: float = math.inf) -> None:
        super().__init__(daemon=True)
        self.is_victim, self.moment, self.killed = is_victim, moment, 0
        self.seconds = 0.0  # from the first such process to the last moment with one
        self.ended = threading.Event()

    def run(self) -> None:
        began = None
        while not self.ended.wait(0.02):
            for process in psutil.Process().children(recursive=True):
                try:
                    if not self.is_victim(process):
                        continue
                    began = began or time.monotonic()
                    self.seconds = time.monotonic() - began
                    if self.seconds >= self.moment:
                        process.kill()
                        self.killed += 1
                        return
                except psutil.Error:
                    continue

    def watch(self, *prediction: Any) -> int:
        """Run a prediction while this thread watches it; return its exit code."""
        self.start()
        code = predict(*prediction)
        self.ended.set()
        self.join()
        return code


@pytest.mark.parametrize(
    ("engine", "is_victim"),
    [("local", is_shard_worker), ("ray", is_shard_worker), ("ray", is_busy_ray_worker)],
)
def test_a_process_killed_at_a_random_moment_changes_nothing(engine, is_victim, prediction, tmp_path):
    if engine == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'nlpcapsule[ray]'")
    model, rows, expected = prediction
    words = (model, rows, tmp_path / "out.jsonl", "--shards", "3", "--engine", engine)
    undisturbed = Killer(is_victim)
    assert undisturbed.watch(*words) == 0
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    assert undisturbed.seconds > 0, "no process to kill was seen"
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbits(32))
    generator = random.Random(seed)
    for _ in range(5):  # this run may be faster than the first one and end before a late moment
        (tmp_path / "out.jsonl").unlink()
        killer = Killer(is_victim, generator.uniform(0, undisturbed.seconds))
        code = killer.watch(*words)
        moment = f"{killer.moment:.2f} of {undisturbed.seconds:.2f} s"
        message = f"killed after {moment}; repeat this with {SEED_VARIABLE}={seed}"
        assert code == 0, message
        assert (tmp_path / "out.jsonl").read_bytes() == expected, message
        assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"], message
        if killer.killed:
            return
    pytest.fail(f"no process lived long enough to be killed; {message}")


def test_a_killed_prediction_goes_on(prediction, tmp_path):
    model, rows, expected = prediction
    output = tmp_path / "out.jsonl"
    words = ["predict", str(model), str(rows), "--output", str(output), "--top-k", "3", "--shards", "4"]
    command = [sys.executable, "-P", "-m", "nlpcapsule", *words]
    started = subprocess.Popen(command)
    shards = tmp_path / "out.jsonl.shards"
    while not list(shards.glob("results-*")) and started.poll() is None:
        time.sleep(0.05)
    started.kill()
    started.wait()
    assert not output.exists()
    subprocess.run(command, check=True)
    assert output.read_bytes() == expected
