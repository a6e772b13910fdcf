"""Compute the gradients of a step: this process's share of its batches, in parts where memory is short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.training.shared_work import share_of

if TYPE_CHECKING:
    from nlpcapsule.training.loop import Task

_BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")


def is_bf16(settings: TrainingSettings, device: torch.device) -> bool:
    """Return whether the forward pass computes in bf16 on a device; "auto" asks for a CPU's instructions."""
    if settings.precision != "auto" or device.type != "cpu":
        return settings.precision == "bf16"
    # It would be slow without them. Old torch does not know.
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(found.get(name) for name in _BF16_INSTRUCTIONS)


@dataclass
class StepGradients:
    """Adds the gradients of a step's batches to those of a network, which has none before.

    Every document (or question) of a batch weighs the same, whichever process reads it, in whichever part.
    """

    task: Task
    network: nn.Module  # as `accelerator.prepare` returns it
    accelerator: Accelerator
    bf16: bool  # Computes in bf16
    parts: int = 1  # of each batch; doubled where memory runs out
    read: int = 0  # rows that this process has read

    def add(
        self, batches: Sequence[np.ndarray], first_seed: tuple[int, int, int], say: Callable[[str], None]
    ) -> Tensor:
        """Add the gradients of the mean of the losses of batches, given by their rows.

        If memory runs out, begin again with twice as many parts per batch, down to single rows, and say so.
        One process of several cannot: the others would not follow. `first_seed` is the seed, the epoch and
        the number of the first batch. Returns this process's part of the sum of the losses; the sum is the
        mean of these parts.
        """
        seed, epoch, first = first_seed
        while True:
            losses = torch.zeros((), dtype=torch.float64, device=self.accelerator.device)
            try:
                for number, batch in enumerate(batches):
                    step_seed, is_last = (seed, epoch, first + number), number == len(batches) - 1
                    losses += self._add_batch(batch, step_seed, len(batches), is_last)
            except torch.OutOfMemoryError:
                if self.parts >= max(map(len, batches)) or self.accelerator.num_processes > 1:
                    raise
            else:
                self.read += sum(len(share_of(batch)) for batch in batches)
                return losses
            # Outside of the handler, whose exception keeps the tensors of the step.
            self.parts *= 2
            say(f"out of memory: every batch is processed in {self.parts} parts from now on")
            self.network.zero_grad()
            if self.accelerator.device.type == "cuda":
                torch.cuda.empty_cache()

    def _add_batch(
        self, batch: np.ndarray, step_seed: tuple[int, ...], divisor: int, is_last: bool
    ) -> Tensor:
        """Add the gradients of a batch's loss, divided by a number; the last batch of a step is exchanged."""
        own = share_of(batch)
        # Every process must take part in a step, if only with a weight of zero.
        pieces = np.array_split(own, min(self.parts, len(own))) if len(own) else [batch[:1]]
        total = torch.zeros((), device=self.accelerator.device)
        # Seeding devices that are not in use is slow: torch keeps the stack of every such call.
        generator = torch.default_generator if self.accelerator.device.type == "cpu" else torch
        for number, piece in enumerate(pieces):
            seed = (*step_seed, self.accelerator.process_index, *((number,) if number else ()))
            generator.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
            weighed = len(piece) * self.accelerator.num_processes if len(own) else 0
            scale = len(batch) / weighed if weighed else float("inf")
            is_exchanged = is_last and number == len(pieces) - 1
            with nullcontext() if is_exchanged else self.accelerator.no_sync(self.network):
                with torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=self.bf16):
                    loss = self.task.loss(self.network, piece, seed)
                self.accelerator.backward(loss / (divisor * scale))
            total += loss.detach() / scale
        return total
