"""Time a few steps of a training: for a plan before the work, and for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.training.loop import Task, train_network
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.shared_work import this_process

_WARM_UP = 2  # steps that allocate memory and are not counted


class _TimedTask:
    """A task of a few batches, from the one with the shortest texts to the one with the longest."""

    def __init__(self, task: Task, steps: int) -> None:
        self.title, self.select_by, self.warmup = task.title, task.select_by, task.warmup
        self.lengths = task.lengths
        self._task, self._steps = task, steps
        self.times: list[float] = []

    def batches(self, epoch: int) -> Sequence[np.ndarray]:
        """Return batches spread evenly over an epoch's, after two of the longest texts to warm up."""
        every = sorted(self._task.batches(epoch), key=self._longest)
        chosen = [every[index] for index in np.linspace(0, len(every) - 1, self._steps).astype(int)]
        return [every[-1]] * _WARM_UP + chosen

    def _longest(self, rows: np.ndarray) -> int:
        return int(self.lengths[rows].max())

    def loss(self, network: nn.Module, rows: np.ndarray, step_seed: Sequence[int]) -> Tensor:
        """Return the task's loss."""
        self.times.append(_now())
        return self._task.loss(network, rows, step_seed)

    def dev_metrics(self, network: nn.Module) -> dict[str, float]:
        """Return nothing, and note when the last batch has ended."""
        self.times.append(_now())
        return {}


def _now() -> float:
    """Return the time at which what a GPU was asked for is done."""
    if this_process().device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class _Remarks(TrainingProgress):
    """Progress that passes on remarks, and shows no epochs."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(quiet=True)
        self._pass_on = say

    def say(self, text: str) -> None:
        """Pass on a remark."""
        self._pass_on(text)

    def epoch(self, title: str, record: Mapping[str, Any]) -> None:
        """Show nothing."""


def time_steps(
    network: nn.Module,
    task: Task,
    settings: TrainingSettings,
    steps: int,
    say: Callable[[str], None] = lambda text: None,
) -> np.ndarray:
    """Train a network for a few steps and return the seconds (steps,) that each took.

    Batches are not accumulated: each makes a step. The network's weights change. `say` gets remarks, such as
    that memory ran out.
    """
    timed = _TimedTask(task, steps)
    once = {"epochs": 1, "gradient_accumulation_steps": 1, "checkpoint_epochs": 0.0}
    with TemporaryDirectory() as folder:
        settings = settings.model_copy(update=once)
        train_network(network, timed, settings, Path(folder), _Remarks(say))
    return np.diff(timed.times)[_WARM_UP:]
