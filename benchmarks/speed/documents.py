"""Candidates and one epoch on generated data with tens of thousands of labels."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.generated import GeneratedLabels
from nlpcapsule.atomic_files import atomic_text
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.processes import module_command

_NOMINATED = "candidates: "  # the line that `train` prints once labels are nominated
_EPOCH = "epoch 1"


@dataclass(frozen=True)
class TrainingCost:
    """The cost of the first epoch of a training, and what its candidates are worth."""

    labels: int  # of the training part
    recall_ceiling: float  # labels that leave words in the text
    candidate_recall: float  # of held-out documents, among 200
    precision_at_1: float  # of held-out documents, after one epoch
    candidates_seconds: float  # until hard negatives and candidates are nominated
    epoch_seconds: float  # from then to the end of the epoch
    cpu_seconds: float  # of all processes
    peak_memory_gib: float  # of all processes together

    def to_json(self) -> dict[str, Any]:
        """Return the record for the results file."""
        return asdict(self)


def cost_of_training(data: GeneratedLabels, folder: Path) -> TrainingCost:
    """Train the small preset for one epoch on generated documents, in a process of its own.

    Args:
        data: The documents.
        folder: An empty folder for data and model.
    """
    train, model = folder / "train.jsonl", folder / "model"
    write_rows(train, data)
    arguments = ["train", str(train), "--output", str(model), "--preset", "small", "--epochs", "1"]
    began = time.perf_counter()
    words = [*module_command("nlpcapsule"), *arguments]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    usage, lines = _Usage(process.pid), []
    times: dict[str, float] = {}
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        for mark in (_NOMINATED, _EPOCH):
            if mark in line:
                times.setdefault(mark, time.perf_counter() - began)
    usage.stop()
    if process.wait():
        raise NlpCapsuleError(f"the training failed: {''.join(lines[-3:])}")
    facts = json.loads((model / "facts.json").read_text(encoding="utf-8"))
    labels = json.loads((model / "labels.json").read_text(encoding="utf-8"))
    return TrainingCost(
        len(labels),
        data.recall_ceiling,
        facts["candidate_recall"],
        facts["dev"]["P@1"],
        times[_NOMINATED],
        times[_EPOCH] - times[_NOMINATED],
        usage.cpu_seconds,
        usage.peak_memory / 2**30,
    )


def write_rows(path: Path, documents: Iterable[Document]) -> None:
    """Write documents as JSON Lines, one at a time."""
    with atomic_text(path) as file:
        for row in documents:
            file.write(json.dumps({"id": row.id, "text": row.text, "labels": row.labels}) + "\n")


class _Usage:
    """Samples the memory and CPU time of a process and its children."""

    def __init__(self, process: int) -> None:
        self.peak_memory, self.cpu_seconds = 0, 0.0
        self._process = psutil.Process(process)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        spent: dict[int, float] = {}
        while not self._ended.wait(0.5):
            memory = 0
            with suppress(psutil.Error):
                for process in [self._process, *self._process.children(recursive=True)]:
                    memory += process.memory_info().rss
                    times = process.cpu_times()
                    spent[process.pid] = times.user + times.system
            self.peak_memory = max(self.peak_memory, memory)
            self.cpu_seconds = sum(spent.values())

    def stop(self) -> None:
        """End the sampling."""
        self._ended.set()
        self._thread.join()
