"""Sharded prediction writes what one process writes, also if a worker is killed at a random moment."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from nlpcapsule.model_folder import save_model
from tests.saved_models import TEXTS, label_model

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="there is no kill -9 here")]

ROWS = 9_000  # more than two chunks for each of two shards


@pytest.fixture(scope="module")
def prediction(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """A model, rows to rank, and what one process writes."""
    folder = tmp_path_factory.mktemp("sharded")
    save_model(label_model(), folder / "model")
    rows = folder / "rows.jsonl"
    texts = (f"{TEXTS[row % len(TEXTS)]} {'snow ' * (row % 7)}" for row in range(ROWS))
    rows.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(texts)))
    predict(folder / "model", rows, folder / "one.jsonl")
    return folder / "model", rows, (folder / "one.jsonl").read_bytes()


def predict(model: Path, rows: Path, output: Path, *options: str) -> None:
    words = ["predict", str(model), str(rows), "--output", str(output), "--top-k", "3", *options]
    subprocess.run([sys.executable, "-P", "-m", "nlpcapsule", *words], check=True)


class Killer(threading.Thread):
    """Kills one worker process some time after it has started."""

    def __init__(self, delay: float) -> None:
        super().__init__(daemon=True)
        self.delay, self.killed = delay, 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.05):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "nlpcapsule.sharding.worker" in process.cmdline():
                        time.sleep(self.delay)
                        process.kill()
                        self.killed += 1
                        return
                except psutil.Error:
                    continue


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_killed_worker_changes_nothing(engine, prediction, tmp_path):
    if engine == "ray":
        pytest.importorskip("ray")
    model, rows, expected = prediction
    delay = random.Random(len(engine)).uniform(0, 5)
    for attempt in range(5):  # the worker may be done before a late moment: then an earlier one is tried
        killer = Killer(delay / 2**attempt)
        killer.start()
        predict(model, rows, tmp_path / "out.jsonl", "--shards", "3", "--engine", engine)
        killer.ended.set()
        killer.join()
        assert (tmp_path / "out.jsonl").read_bytes() == expected
        assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
        if killer.killed:
            return
        (tmp_path / "out.jsonl").unlink()
    pytest.fail("no worker lived long enough to be killed")


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
