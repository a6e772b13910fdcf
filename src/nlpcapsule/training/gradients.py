"""Compute the gradients of a batch: this process's share of it, in parts where memory is short."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from nlpcapsule.training.shared_work import share_of

if TYPE_CHECKING:
    from nlpcapsule.training.loop import Task


@dataclass
class BatchGradients:
    """Adds the gradients of batches to those of a network.

    Every document (or question) of a batch weighs the same, whichever process reads it, in whichever part.
    """

    task: Task
    network: nn.Module  # as `accelerator.prepare` returns it
    accelerator: Accelerator
    bf16: bool  # Computes in bf16
    parts: int = 1  # of each batch
    read: int = 0  # rows that this process has read

    def add(self, batch: np.ndarray, step_seed: Sequence[int], divisor: float, is_step: bool) -> Tensor:
        """Add the gradients of the loss of a batch, divided by a number.

        Processes exchange gradients only before a step. Returns this process's part of the loss; the loss
        is the mean of these parts over all processes.
        """
        own = share_of(batch)
        self.read += len(own)
        # Every process must take part in a step, if only with a weight of zero.
        pieces = np.array_split(own, min(self.parts, len(own))) if len(own) else [batch[:1]]
        total = torch.zeros((), device=self.accelerator.device)
        for number, piece in enumerate(pieces):
            seed = (*step_seed, self.accelerator.process_index, *((number,) if number else ()))
            torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
            weighed = len(piece) * self.accelerator.num_processes if len(own) else 0
            scale = len(batch) / weighed if weighed else float("inf")
            is_exchanged = is_step and number == len(pieces) - 1
            with nullcontext() if is_exchanged else self.accelerator.no_sync(self.network):
                with torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=self.bf16):
                    loss = self.task.loss(self.network, piece, seed)
                self.accelerator.backward(loss / (divisor * scale))
            total += loss.detach() / scale
        return total

    def halve(self, most: int) -> None:
        """Process batches of at most `most` rows in twice as many parts from now on.

        Raises:
            torch.OutOfMemoryError: If parts cannot be smaller, or other processes would not follow.
        """
        if self.parts * self.accelerator.num_processes >= most or self.accelerator.num_processes > 1:
            raise torch.OutOfMemoryError(f"out of memory with {self.parts} parts of a batch of {most}")
        self.parts *= 2
        if self.accelerator.device.type == "cuda":
            torch.cuda.empty_cache()
