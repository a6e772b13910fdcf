"""A task small enough to train in milliseconds, with all that makes resuming hard: order, dropout, noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder

BATCHES = 7
EVERY_TWO_STEPS = 2 / BATCHES  # epochs between checkpoints
_ROWS = 4 * BATCHES


class PowerCutError(Exception):
    """What stops a run in these tests."""


class ToyTask:
    """A regression whose batches depend on the epoch and whose loss draws noise from the step's seed.

    Args:
        scores: The dev score after each epoch; None has no dev part.
        cut_before: The power fails when this many batches have been done.
        bad_batch: The loss of this batch, counted over all epochs, is not a number.
    """

    title, select_by, warmup = "toy", "score", 0.15

    def __init__(
        self,
        scores: Sequence[float] | None = None,
        cut_before: int | None = None,
        bad_batch: int | None = None,
    ) -> None:
        generator = np.random.default_rng(0)
        self.inputs = torch.from_numpy(generator.normal(size=(_ROWS, 6))).float()
        self.targets = torch.from_numpy(generator.normal(size=(_ROWS, 1))).float()
        self.scores, self.cut_before, self.bad_batch = scores, cut_before, bad_batch
        self.lengths = np.ones(_ROWS, dtype=np.int64)
        self.epoch = self.done = 0
        self.weights_by_epoch: list[dict[str, Tensor]] = []

    def batches(self, epoch: int) -> list[np.ndarray]:
        self.epoch = epoch
        return np.array_split(np.random.default_rng([1, epoch]).permutation(_ROWS), BATCHES)

    def loss(self, network: nn.Module, rows: np.ndarray, step_seed: Sequence[int]) -> Tensor:
        if self.done == self.cut_before:
            raise PowerCutError
        noise = float(np.random.default_rng(step_seed).normal())
        self.done += 1
        loss = (network(self.inputs[rows]) - self.targets[rows] - 0.1 * noise).square().mean()
        return loss * torch.nan if self.bad_batch == self.done - 1 else loss

    def dev_metrics(self, network: nn.Module) -> dict[str, float]:
        self.weights_by_epoch.append(copied(network))
        return {} if self.scores is None else {"score": self.scores[self.epoch]}


def toy_network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Dropout(0.3), nn.Linear(8, 1))


class RowsOfTheirOwn(nn.Module):
    """A network each of whose inputs reads one of nine rows of weights, so that gradients are sparse.

    The last row is never read.
    """

    outputs = 9

    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(6, 8)
        self.dropout = nn.Dropout(0.3)
        self.transform = PairTransforms(self.outputs, inputs=2, size=4, deviation=0.5, sparse=True)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, 6) → (B, 1)."""
        capsules = self.dropout(self.lift(inputs)).unflatten(1, (2, 4))  # (B, 2, 4)
        rows = (100 * inputs[:, :1]).long() % (self.outputs - 1)  # (B, 1)
        return self.transform(capsules, rows).total()[..., 0]


def network_with_sparse_gradients(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return RowsOfTheirOwn()


def copied(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def train_toy(
    folder: Path,
    task: ToyTask,
    *,
    seed: int = 1,
    record: bool = False,
    build: Callable[[], nn.Module] = toy_network,
    **settings: Any,
) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Trains a new toy network in `folder`, or goes on there: its weights and its history."""
    network = build()
    history = train_network(
        network,
        task,
        TrainingSettings(**{"epochs": 3, "learning_rate": 0.05, "seed": seed} | settings),
        folder / "checkpoint",
        TrainingProgress(quiet=True),
        Recorder(folder) if record else None,
    )
    return copied(network), history


def without_seconds(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of a history must be the same in two runs."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]


def same_weights(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    """Whether every number is the same, bit by bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
