"""The benchmark of processes trains with torchrun, and each process reads its share."""

import pytest

from benchmarks.generated import GeneratedLabels
from benchmarks.speed import processes

pytestmark = pytest.mark.slow


def test_two_processes_share_an_epoch(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "_DATA", GeneratedLabels(labels=20, documents=200, vocabulary=500))
    one, two = processes.speed_of_processes([1, 2], tmp_path)
    assert one["speedup"] == 1
    assert two["speedup"] == pytest.approx(one["seconds"] / two["seconds"])
    assert one["rows_per_process"] is None
    assert two["rows_per_process"] == [90, 90]  # a tenth is held out
