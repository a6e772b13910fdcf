"""The benchmark of many documents goes on where it was stopped, and counts the time of all its runs."""

import json
import sys

import pytest

from benchmarks.generated import GeneratedLabels
from benchmarks.speed import documents
from benchmarks.speed.documents import TrainingOptions, cost_of_training
from nlpcapsule.errors import NlpCapsuleError

DATA = GeneratedLabels(labels=20, documents=40)
USED = {"cpu_seconds": 7.0, "peak_memory": 2**30, "peak_resident": 2**31, "peak_gpu_memory": None}
MACHINE = {"cores": 2}


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """The commands that were run: the first is stopped after 100 s, the second ends after 50."""
    commands = []

    def run(words, marks, keep):
        commands.append(words)
        model = tmp_path / "model"
        model.mkdir(exist_ok=True)
        if len(commands) == 1:
            keep({"seconds": 100.0, "marks": {marks[0]: 80.0}, **USED})
            raise KeyboardInterrupt
        (model / "labels.json").write_text(json.dumps(["a"] * 20))
        times = {marks[0]: 5.0, marks[1]: 30.0}
        return {"seconds": 50.0, "marks": times, **USED, "peak_memory": 2**32, "machine": MACHINE}

    monkeypatch.setattr(documents, "_run", run)
    monkeypatch.setattr(documents, "_accuracy", lambda model, test: (0.9, 0.8, 0.95))
    return commands


def test_a_stopped_run_is_resumed_and_its_time_counts(runs, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        cost_of_training(DATA, tmp_path, TrainingOptions())
    written = (tmp_path / "train.jsonl").stat().st_mtime_ns
    cost = cost_of_training(DATA, tmp_path, TrainingOptions())
    assert ["--resume" in words for words in runs] == [False, True]
    assert (tmp_path / "train.jsonl").stat().st_mtime_ns == written
    assert cost.candidates_seconds == 80  # of the first run
    assert cost.epoch_seconds == 100 + 30 - 80
    assert (cost.training_seconds, cost.cpu_seconds, cost.peak_memory_gib, cost.runs) == (150, 14, 4, 2)


def test_a_folder_of_another_training_is_refused(runs, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        cost_of_training(DATA, tmp_path, TrainingOptions())
    with pytest.raises(NlpCapsuleError, match="other options"):
        cost_of_training(DATA, tmp_path, TrainingOptions(epochs=2))


def test_a_command_is_timed_and_kept_meanwhile(monkeypatch):
    monkeypatch.setattr(documents, "_KEPT_EVERY", 0.05)
    kept = []
    script = "import sys, time; print('one mark', file=sys.stderr, flush=True); time.sleep(1.2)"
    found = documents._run([sys.executable, "-c", script], ["mark"], kept.append)
    assert kept
    assert kept[-1]["marks"] == found["marks"]
    assert 0 < found["marks"]["mark"] <= found["seconds"]
    assert found["machine"]["cores"] >= 1
