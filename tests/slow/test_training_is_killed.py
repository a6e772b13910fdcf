"""`nlpcapsule train`, killed at random moments: resumed, it ends with the same bytes, and nothing is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path += [str(Path(__file__).parents[1] / "training")]

from tiny_runs import some_documents, write_documents
from typer.testing import CliRunner

from nlpcapsule.cli.app import app
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.model_folder import load_model

pytestmark = pytest.mark.slow

NETWORK = {
    "embedding_size": 8,
    "filters": 8,
    "capsule_size": 8,
    "condensed": 4,
    "document_size": 8,
    "batch_size": 8,
    "epochs": 6,
    "checkpoint_epochs": 0.2,
}
RUNS = {
    "network": ["--model=label-query"],
    "lexical": ["--model=one-vs-rest"],
    "hybrid": ["--set=lexical=one-vs-rest"],
}
PATIENCE = 120  # seconds until a test gives up on a process
SOON = 30  # seconds in which a killed process's own children have to end


def arguments(data: Path, out: Path, run: str, *more: str) -> list[str]:
    sizes = [] if run == "lexical" else [f"--set={key}={value}" for key, value in NETWORK.items()]
    files = [str(data / "train.jsonl"), "--dev", str(data / "dev.jsonl"), "--output", str(out)]
    return ["train", *files, "--quiet", *RUNS[run], *sizes, *more]


def start(data: Path, out: Path, run: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nlpcapsule.cli.app", *arguments(data, out, run)]
    return subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)


def wait_for_the_start(process: subprocess.Popen[bytes], out: Path) -> None:
    give_up = time.monotonic() + PATIENCE
    while not (out / "checkpoint").exists() and process.poll() is None:
        assert time.monotonic() < give_up, "training did not start"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_documents(folder / "train.jsonl", some_documents(200))
    write_documents(folder / "dev.jsonl", some_documents(30, "dev"))
    return folder


@pytest.fixture(scope="module", params=RUNS)
def whole(request, data, tmp_path_factory):
    """The name of a run, its folder when nothing happens to it, and the seconds that it took."""
    out = tmp_path_factory.mktemp("whole") / "model"
    process = start(data, out, request.param)
    wait_for_the_start(process, out)
    started = time.monotonic()
    assert process.wait(PATIENCE) == 0
    return request.param, out, time.monotonic() - started


def model_files(folder: Path) -> dict[str, bytes]:
    """All that is in a finished folder, but for what tells seconds."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "metrics.jsonl"
    }


def test_a_killed_training_is_resumed_to_the_same_bytes(whole, data, tmp_path, kills):
    run, expected, seconds = whole
    for number in range(kills):
        generator = random.Random(f"{run} {number}")
        out = tmp_path / str(number)
        process = start(data, out, run)
        wait_for_the_start(process, out)
        time.sleep(generator.uniform(0, seconds))
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        _, left = psutil.wait_procs(children, timeout=SOON)
        assert not left, f"kill {number}: processes are left behind: {left}"
        is_finished = (out / "manifest.json").exists() or (out / ".nlpcapsule-saved").exists()
        if is_finished:
            load_model(out)
        else:
            with pytest.raises(ModelFolderError):
                load_model(out)
        has_begun = is_finished or (out / "checkpoint" / "run.json").exists()
        resumed = CliRunner().invoke(app, arguments(data, out, run, *(["--resume"] if has_begun else [])))
        assert resumed.exit_code == 0, f"kill {number}: {resumed.output} {resumed.exception}"
        assert model_files(out) == model_files(expected), f"kill {number}"
