"""`nlpcapsule train` at the command line: killed for real, resumed, and never writing over anything."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tiny_runs import some_documents, write_documents
from typer.testing import CliRunner

from nlpcapsule.cli.app import app

SETTINGS = {
    "embedding_size": 8,
    "filters": 8,
    "capsule_size": 8,
    "condensed": 4,
    "document_size": 8,
    "batch_size": 4,
    "epochs": 3,
    "checkpoint_epochs": 0.3,
    "ema_decay": 0.9,
    "negatives": "uniform",
    "negative_count": 10,
}
PATIENCE = 300  # seconds until a test gives up on a process


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    train = write_documents(folder / "train.jsonl", some_documents(96))
    dev = write_documents(folder / "dev.jsonl", some_documents(20, "dev"))
    return str(train), str(dev)


def arguments(files, out, *more, **changed):
    train, dev = files
    assignments = [f"--set={key}={value}" for key, value in (SETTINGS | changed).items()]
    return ["train", train, "--dev", dev, "--output", str(out), "--quiet", *assignments, *more]


def train_here(files, out, *more, **changed):
    """Trains in this process, which has one thread, as the killed one has: sums are then added up alike."""
    return CliRunner().invoke(app, arguments(files, out, *more, **changed))


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "model"
    result = train_here(files, folder)
    assert result.exit_code == 0, result.output
    return folder


def killed_mid_training(files, out):
    """Starts training in a process of its own and kills it once its checkpoint has been replaced."""
    command = [sys.executable, "-m", "nlpcapsule.cli.app", *arguments(files, out)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    state = out / "checkpoint" / "network" / "state.safetensors"
    seen = set()
    give_up = time.monotonic() + PATIENCE
    try:
        while len(seen) < 3:
            assert process.poll() is None, "training ended before it could be killed"
            assert time.monotonic() < give_up, "no checkpoint appeared"
            if state.exists():
                seen.add(state.stat().st_mtime_ns)
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_killed_process_is_resumed_to_the_same_bytes(files, uninterrupted, tmp_path):
    out = tmp_path / "model"
    killed_mid_training(files, out)
    assert not (out / "manifest.json").exists()

    refused = CliRunner().invoke(app, arguments(files, out))
    assert "holds an unfinished training" in str(refused.exception)

    resumed = train_here(files, out, "--resume")
    assert resumed.exit_code == 0, resumed.output
    for name in ("network.safetensors", "facts.json", "manifest.json"):
        assert (out / name).read_bytes() == (uninterrupted / name).read_bytes(), name
    assert not (out / "checkpoint").exists()
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == SETTINGS["epochs"]


def test_a_finished_folder_says_so_and_is_left_alone(files, uninterrupted):
    before = {path.name: path.stat().st_mtime_ns for path in uninterrupted.iterdir()}
    result = train_here(files, uninterrupted, "--resume")
    assert result.exit_code == 0
    assert "is finished; nothing is left to do" in result.output
    assert {path.name: path.stat().st_mtime_ns for path in uninterrupted.iterdir()} == before


def test_a_folder_with_something_in_it_is_refused_and_left_alone(files, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    result = train_here(files, tmp_path)
    assert "already holds other files" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
