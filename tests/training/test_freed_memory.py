"""The memory of freed tensors goes back to the operating system while a network is trained."""

import subprocess
import sys
from pathlib import Path

import pytest
from toy_task import ToyTask, train_toy

from nlpcapsule.training import freed_memory, loop

GAPS = """
import numpy as np, psutil
from nlpcapsule.training.freed_memory import give_back_freed_memory

arrays = [np.ones(2**16, np.uint8) for _ in range(4_000)]  # too small for pages of their own
kept = arrays[::20]
del arrays
before = psutil.Process().memory_info().rss
give_back_freed_memory()
print((before - psutil.Process().memory_info().rss) // 2**20)
"""


@pytest.mark.skipif(freed_memory._TRIM is None, reason="glibc's heap")
def test_gaps_between_tensors_in_use_are_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 150  # MiB, of 250


def test_training_gives_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches_done = []
    task = ToyTask()
    monkeypatch.setattr(loop, "give_back_freed_memory", lambda: batches_done.append(task.done))
    monkeypatch.setattr(loop, "_LOSS_EVERY", 3)
    train_toy(tmp_path, task, epochs=1)
    assert batches_done == [3, 6, 7]
