"""Save the state of a training run in one safetensors file that is replaced atomically.

No random state is stored: order, negatives and dropout are functions of the seed and the step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError
from torch import nn

from nlpcapsule.errors import ModelFolderError, first_line
from nlpcapsule.lexical.arrays import array_to_text, load_arrays, save_arrays, text_to_array
from nlpcapsule.scoring.facts import Count
from nlpcapsule.training.optimizers import optimizer_states, restore_optimizers

Optimizers = Sequence[torch.optim.Optimizer]

_DAMAGE = (ModelFolderError, RuntimeError, LookupError, TypeError, ValueError, AttributeError)
START_AGAIN = (
    "start again without --resume: name another folder with --output, or delete the run's folder first"
)


@dataclass
class Position:
    """Progress of a training run."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, allow_inf_nan=False, extra="forbid")

    epoch: Count = 0  # epochs finished
    batch: Count = 0  # batches finished in the epoch under way
    step: Count = 0  # optimizer steps taken
    best_score: float | None = None  # on dev
    best_epoch: Count = 0  # the epoch it was reached after, from 1
    loss_sum: float = 0.0  # of the epoch under way
    history: list[dict[str, Any]] = field(default_factory=list)  # one record per epoch, as in metrics.jsonl
    finished: bool = False  # no epoch is left

    @classmethod
    def from_json(cls, text: str) -> Position:
        """Parse the position that a checkpoint holds; a wrong one is a ValueError."""
        try:
            position = TypeAdapter(cls).validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        if not position.best_epoch <= position.epoch == len(position.history):
            raise ValueError(f"{len(position.history)} records of {position.epoch} epochs")
        return position


class Checkpoint:
    """Save and restore one network's training: its state and, once there is a dev score, the best weights."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state.safetensors"
        self.best = folder / "best.safetensors"
        self._kept: dict[str, np.ndarray] | None = None  # best weights that are not on disk yet

    def save(
        self, position: Position, network: nn.Module, optimizers: Optimizers, average: nn.Module | None = None
    ) -> None:
        """Save pending best weights, then the state of the run."""
        if self._kept is not None:
            save_arrays(self.best, **self._kept)
            self._kept = None
        arrays = _prefixed("network", network)
        if average is not None:
            arrays |= _prefixed("average", average)
        states = optimizer_states(optimizers)
        arrays |= {f"optimizer.{name}": value.numpy() for name, value in states.items()}
        text = text_to_array(json.dumps(asdict(position)))
        save_arrays(self.state, **arrays, position=text)

    def keep_best(self, network: nn.Module) -> None:
        """Keep the weights of the best epoch so far in memory until the next `save`.

        This keeps the two files consistent, however many epochs lie between two checkpoints.
        """
        self._kept = {name: array.copy() for name, array in _prefixed("network", network).items()}

    def restore(
        self, network: nn.Module, optimizers: Optimizers, average: nn.Module | None = None
    ) -> Position:
        """Restore the run's state; a run that never saved starts from the beginning."""
        if not self.state.exists():
            return Position()
        with _reject_damage(self.state):
            arrays = load_arrays(self.state, needs_checksum=True)
            position = Position.from_json(array_to_text(arrays.pop("position"), "position"))
            if position.best_epoch:  # needed only at the end, but report damage before training continues
                self._load_best(network)
            network.load_state_dict(_stripped("network", arrays))
            if average is not None:
                average.load_state_dict(_stripped("average", arrays))
            restore_optimizers(optimizers, _stripped("optimizer", arrays))
        return position

    def restore_best(self, network: nn.Module) -> None:
        """Load the best epoch's weights into the network, if any were kept or saved."""
        if self._kept is not None:
            network.load_state_dict(_stripped("network", self._kept))
        elif self.best.exists():
            self._load_best(network)

    def _load_best(self, network: nn.Module) -> None:
        with _reject_damage(self.best):
            network.load_state_dict(_stripped("network", load_arrays(self.best, needs_checksum=True)))


@contextmanager
def _reject_damage(path: Path) -> Iterator[None]:
    """Turn any error of reading a file into one that tells the user what to do."""
    try:
        yield
    except _DAMAGE as error:
        first = first_line(error).removeprefix(f"{path} is damaged: ")
        problem = f"{path} is damaged or belongs to another run ({first})"
        raise ModelFolderError(f"{problem}; {START_AGAIN}") from None


def _prefixed(prefix: str, module: nn.Module) -> dict[str, np.ndarray]:
    weights = module.state_dict().items()
    return {f"{prefix}.{name}": tensor.detach().cpu().contiguous().numpy() for name, tensor in weights}


def _stripped(prefix: str, arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    start = f"{prefix}."
    return {
        name.removeprefix(start): torch.from_numpy(array)
        for name, array in arrays.items()
        if name.startswith(start)
    }
