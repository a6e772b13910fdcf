"""The training loop."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import reduce
from torch import Tensor, nn

from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.training.checkpoint import Checkpoint, Position
from nlpcapsule.training.freed_memory import give_back_freed_memory
from nlpcapsule.training.gradients import StepGradients, is_bf16
from nlpcapsule.training.optimizers import build_optimizers, clip_gradients
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder
from nlpcapsule.training.row_updates import MovingAverage, choose_row_updates, exchange_rows, keep_rows_apart
from nlpcapsule.training.shared_work import joined_shares, this_process, value_of_main

WARMUP = 0.15  # fraction of the steps in which the learning rate rises
_LOSS_EVERY = 10  # batches between reads of the loss: each read synchronises the GPU


class Task(Protocol):
    """A learning task: labels of documents, or answers to questions."""

    title: str  # in progress messages
    select_by: str  # the dev metric of the best epoch
    warmup: float  # fraction of the steps in which the learning rate rises

    @property
    def lengths(self) -> np.ndarray:
        """(N,) tokens of each row, which the time and memory of a batch depend on."""

    def batches(self, epoch: int) -> Sequence[np.ndarray]:
        """Return the epoch's batches of row indices; deterministic."""

    def loss(self, network: nn.Module, rows: np.ndarray, step_seed: Sequence[int]) -> Tensor:
        """Return the mean loss of rows; all randomness comes from `step_seed`."""

    def dev_metrics(self, network: nn.Module) -> dict[str, float]:
        """Return metrics of a network in eval mode on held-out data; empty without held-out data."""


def train_network(
    network: nn.Module,
    task: Task,
    settings: TrainingSettings,
    folder: Path,
    progress: TrainingProgress,
    recorder: Recorder | None = None,
) -> list[dict[str, Any]]:
    """Train a network in place and leave it with the weights of its best epoch on dev (or the last).

    A stopped run resumes from the checkpoints in `folder` and ends with the same weights as an uninterrupted
    one. Returns a record per epoch: loss, learning rate, seconds, dev metrics.
    """
    this_process()  # before accelerate initialises its state in another way
    accelerator = Accelerator()
    checkpoint = Checkpoint(folder)
    network.to(accelerator.device)
    choose_row_updates(network, settings)
    tables = keep_rows_apart(network)
    optimizers = build_optimizers(network, settings)
    bf16, allowed = is_bf16(settings, accelerator.device), torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed or bf16  # float32 operations may then use TF32
    batches_per_epoch = len(task.batches(0))
    accumulated = settings.gradient_accumulation_steps
    steps_per_epoch = math.ceil(batches_per_epoch / accumulated)
    total_steps = settings.epochs * steps_per_epoch
    checkpoint_steps = max(1, round(settings.checkpoint_epochs * steps_per_epoch))
    average = None
    if settings.ema_decay:
        decay = averaging_decay(settings.ema_decay, total_steps)
        average = MovingAverage(network, decay)
    position = checkpoint.restore(network, optimizers, average)
    trained = accelerator.prepare(network)
    gradients = StepGradients(task, trained, accelerator, bf16)
    done = position.epoch * batches_per_epoch + position.batch
    progress.start(task.title, settings.epochs * batches_per_epoch, done)

    while not position.finished:
        started = time.perf_counter()
        batches = task.batches(position.epoch)
        network.train()
        gradients.read = 0
        loss_sum = torch.tensor(position.loss_sum, dtype=torch.float64, device=accelerator.device)
        while position.batch < len(batches):
            together = batches[position.batch : position.batch + accumulated]
            loss_sum += gradients.add(together, (settings.seed, position.epoch, position.batch), progress.say)
            exchange_rows(tables)
            clip_gradients(trained.parameters(), settings.max_grad_norm)
            if average is not None:
                average.prepare_step()
            rate = learning_rate(position.step, total_steps, settings.learning_rate, task.warmup)
            for optimizer in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = group["factor"] * rate
                optimizer.step()
                optimizer.zero_grad()
            if average is not None:
                average.update_parameters(network)
            position.step += 1
            position.batch += len(together)
            at_checkpoint = (
                0 < settings.checkpoint_epochs < 1 and position.step % steps_per_epoch % checkpoint_steps == 0
            )
            is_due = position.batch % _LOSS_EVERY < len(together)
            if at_checkpoint or is_due or position.batch == len(batches):
                position.loss_sum = _finite(loss_sum, position, settings)
                figures = f"loss {position.loss_sum / position.batch:.4f}"
                progress.parts(position.epoch * len(batches) + position.batch, figures=figures)
                if accelerator.device.type == "cpu":
                    give_back_freed_memory()
            if at_checkpoint and position.batch < len(batches):
                if average is not None:
                    average.catch_up()
                if accelerator.is_main_process:
                    checkpoint.save(position, network, optimizers, average)
        if average is not None:
            average.catch_up()
        candidate = network if average is None else average.module
        candidate.eval()  # the next epoch begins with network.train()
        record = {
            "epoch": position.epoch + 1,
            "epochs": settings.epochs,
            "loss": position.loss_sum / len(batches),
            "seconds": time.perf_counter() - started,
            **value_of_main(task.dev_metrics(candidate)),
        }
        if accelerator.num_processes > 1:
            shares = joined_shares(np.array([gradients.read]), accelerator.num_processes)
            record["rows_per_process"] = shares.tolist()
        position = _next_epoch(position, record, task.select_by, settings)
        progress.epoch(task.title, record)
        if position.best_epoch == position.epoch:
            checkpoint.keep_best(candidate)
        if accelerator.is_main_process:
            if recorder is not None:  # before the checkpoint, or a run killed in between would lose a line
                recorder.record(position.history)
            every = max(1, round(settings.checkpoint_epochs))
            if settings.checkpoint_epochs and position.epoch % every == 0:
                checkpoint.save(position, network, optimizers, average)
        accelerator.wait_for_everyone()

    if average is not None:
        network.load_state_dict(average.module.state_dict())
    checkpoint.restore_best(network)
    accelerator.free_memory()
    torch.backends.cuda.matmul.allow_tf32 = allowed
    network.eval()
    return position.history


def averaging_decay(wanted: float, steps: int) -> float:
    """Return the decay of the moving average, limited to a quarter of the training.

    An average with decay d spans about 1 / (1 - d) steps. In a training that is not much longer, it would
    still contain the initial weights at the end.

    Example:
        >>> averaging_decay(0.999, 10_000)
        0.999
        >>> averaging_decay(0.999, 400)
        0.99
    """
    return max(0.0, min(wanted, 1 - 4 / steps))


def learning_rate(step: int, total: int, peak: float, warmup: float = WARMUP) -> float:
    """Return the one-cycle rate: a linear rise to the peak in the warm-up, then half a cosine down to zero.

    Example:
        >>> learning_rate(0, 10, peak=1.0, warmup=0.0)
        1.0
    """
    rise = warmup * total
    if step < rise:
        return peak * (step + 1) / (rise + 1)
    through = (step - rise) / max(1.0, total - rise)
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, through)))


def _next_epoch(
    position: Position, record: dict[str, Any], select_by: str, settings: TrainingSettings
) -> Position:
    epoch, score = position.epoch + 1, record.get(select_by)
    best_score, best_epoch = position.best_score, position.best_epoch
    if score is not None and (best_score is None or score > best_score):
        best_score, best_epoch = score, epoch
    history, finished = [*position.history, record], epoch >= settings.epochs
    return Position(epoch, 0, position.step, best_score, best_epoch, 0.0, history, finished)


def _finite(loss_sum: Tensor, position: Position, settings: TrainingSettings) -> float:
    value = float(reduce(loss_sum))  # the mean over processes
    if not math.isfinite(value):
        raise NlpCapsuleError(
            f"the loss became {value} in epoch {position.epoch + 1} by batch {position.batch}; lower "
            f"training.learning_rate (now {settings.learning_rate}) or set training.precision=float32"
        )
    return value
