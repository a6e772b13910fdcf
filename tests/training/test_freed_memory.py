"""The memory of freed tensors is reused while a network is trained on a CPU; gaps are given back."""

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

LARGE = """
import resource, torch
from nlpcapsule.training.freed_memory import reused_memory

def new_pages(numbers):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(numbers)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

usual = new_pages(2**24)  # 64 MiB: 16,384 pages of 4 KiB, 20 times
with reused_memory():
    reused = new_pages(2**24)
print(usual, reused, new_pages(2**25))  # no gap in the heap is large enough for the last ones
"""

needs_glibc = pytest.mark.skipif(not freed_memory._HAS_GLIBC, reason="glibc's heap")


def printed(code: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@needs_glibc
def test_gaps_between_tensors_in_use_are_given_back() -> None:
    assert printed(GAPS)[0] > 150  # MiB, of 250


@needs_glibc
def test_large_tensors_get_the_memory_of_freed_ones_and_later_ones_do_not() -> None:
    usual, reused, later = printed(LARGE)
    assert reused < 0.2 * usual
    assert later > 1.6 * usual


def test_training_gives_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches_done = []
    task = ToyTask()
    monkeypatch.setattr(loop, "give_back_freed_memory", lambda: batches_done.append(task.done))
    monkeypatch.setattr(loop, "_GIVE_BACK_EVERY", 3)
    train_toy(tmp_path, task, epochs=1)
    assert batches_done == [3, 6, 7]


def test_training_reuses_memory_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values, task = [], ToyTask()
    monkeypatch.setattr(freed_memory, "_HAS_GLIBC", True)
    monkeypatch.setattr(freed_memory, "_set", lambda chosen: values.append((task.done, chosen)))
    monkeypatch.setattr(freed_memory, "give_back_freed_memory", lambda: None)
    train_toy(tmp_path, task, epochs=1)
    assert values == [(0, freed_memory._REUSING), (7, freed_memory._USUAL)]
