"""A plan before the work: the time and memory of a training, estimated from a few real steps."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.config import Config
from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.lexical.evidence import evidence_settings
from nlpcapsule.lexical.ranker import LexicalSettings
from nlpcapsule.networks.build import EmbedsDocuments
from nlpcapsule.provenance import peak_process_memory
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES
from nlpcapsule.threads import thread_count
from nlpcapsule.training.answer_task import AnswerTask
from nlpcapsule.training.fit_answers import PreparedAnswers, answer_network
from nlpcapsule.training.fit_labels import label_network, needs_nominator, with_partial_routing
from nlpcapsule.training.gradients import is_bf16
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.loop import Task, train_network
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.row_updates import row_tables
from nlpcapsule.training.shared_work import this_process

_STEPS = 6  # that are timed
WARM_UP = 2  # steps before that allocate memory


def plan_training(
    data: PreparedLabels | PreparedAnswers, config: Config, say: Callable[[str], None]
) -> list[str]:
    """Return the lines of a plan for prepared data; what nominates candidates is not fitted.

    `say` gets remarks, such as that memory ran out and batches are halved.
    """
    if isinstance(data, PreparedLabels):
        return _plan_labels(data, config, say)
    network = answer_network(config, data)
    if not any(parameter.requires_grad for parameter in network.parameters()):
        return [*data.notes, f"{config.model.name} has no weights to train"]
    task = AnswerTask(config, data.train, None, data.tokenizer.padding_id)
    return [*data.notes, *_measured(network, task, config, say)]


def _plan_labels(data: PreparedLabels, config: Config, say: Callable[[str], None]) -> list[str]:
    lines = list(data.notes)
    if isinstance(config.model, LexicalSettings):
        return [*lines, f"{config.model.name}: no epochs; its time is not estimated"]
    if config.lexical is not None and data.dev is not None:
        config = with_partial_routing(config, len(data.labels))
    network = label_network(config, data)
    if isinstance(network, EmbedsDocuments):
        return [*lines, f"{config.model.name} embeds each document once; its time is not estimated"]
    training, count = config.training, len(data.labels)
    if config.lexical is not None and data.dev is not None:
        name = evidence_settings(config.lexical).name
        fewest = min(config.inference.candidates or CANDIDATES, count)
        nominated = f"nominates at least {fewest:,} candidates per document"
        lines.append(f"before the first epoch, not estimated: {name} is fitted and {nominated}")
    elif needs_nominator(config, count):
        lines.append("before the first epoch, not estimated: a kim-cnn is trained and nominates candidates")
    candidates = None
    if training.negatives == "hard":  # any labels take the time that nominated ones take
        width = min(training.negative_count, count)
        shape = (len(data.train), width)
        candidates = np.random.default_rng(training.seed).integers(0, count, shape, dtype=np.int32)
    task = LabelTask(
        config, data.train, None, data.labels, data.tokenizer.padding_id, train_candidates=candidates
    )
    outputs = {"all": f"{count:,} labels (all)", "batch": "the labels of its batch"}.get(
        training.negatives, f"its labels and {training.negative_count:,} others ({training.negatives})"
    )
    lines.append(f"a document is routed to {outputs}")
    lines += _measured(network, task, config, say)
    if config.lexical is not None and data.dev is not None:
        lines.append("fitting the lexical system and weighing its scores may take more memory")
    if row_tables(network):
        lines.append("label tables are updated by row")
    return lines


def _measured(network: nn.Module, task: Task, config: Config, say: Callable[[str], None]) -> list[str]:
    training, process = config.training, this_process()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    seconds = float(time_steps(network, task, training, _STEPS, say)[:, 0].mean())
    batches = len(task.batches(0))
    epoch = seconds * batches
    memory = f"{peak_process_memory() / 2**30:.1f} GiB of memory"
    if process.device.type == "cuda":
        memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB of GPU memory"
    whole = _duration(epoch * training.epochs)
    return [
        f"{parameters:,} weights on {process.device.type}, {process.num_processes} process(es) of "
        f"{thread_count()} thread(s), precision {'bf16' if is_bf16(training, process.device) else 'float32'}",
        f"{batches:,} batches of {training.batch_size} an epoch, "
        f"{training.gradient_accumulation_steps} batch(es) a step",
        f"about {_duration(epoch)} an epoch, {whole} for {training.epochs} epochs "
        f"({1000 * seconds:.0f} ms a batch), without ranking dev data",
        f"peak so far: {memory}",
    ]


def _duration(seconds: float) -> str:
    """Return a duration in the largest fitting unit.

    Example:
        >>> _duration(90), _duration(9000)
        ('90 s', '150 min')
    """
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 3 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


class _TimedTask:
    """A task of a few batches, from the one with the shortest texts to the one with the longest."""

    def __init__(self, task: Task, steps: int) -> None:
        self.title, self.select_by, self.warmup = task.title, task.select_by, task.warmup
        self.lengths = task.lengths
        self._task, self._steps = task, steps
        self.times: dict[int, tuple[float, float]] = {}  # batch → when it began

    def batches(self, epoch: int) -> Sequence[np.ndarray]:
        """Return batches spread evenly over an epoch's, after two of the longest texts to warm up."""
        every = sorted(self._task.batches(epoch), key=lambda rows: self.lengths[rows].max())
        chosen = [every[index] for index in np.linspace(0, len(every) - 1, self._steps).astype(int)]
        return [every[-1]] * WARM_UP + chosen

    def loss(self, network: nn.Module, rows: np.ndarray, step_seed: Sequence[int]) -> Tensor:
        """Return the task's loss of a batch, or of a part where memory is short."""
        self.times.setdefault(step_seed[2], _now())
        return self._task.loss(network, rows, step_seed)

    def dev_metrics(self, network: nn.Module) -> dict[str, float]:
        """Return nothing, and note when the last batch has ended."""
        self.times[-1] = _now()
        return {}


def _now() -> tuple[float, float]:
    """Return the time at which what a GPU was asked for is done, and the CPU time so far."""
    if this_process().device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter(), time.process_time()


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
    """Train a network for a few steps; return the seconds (steps, 2) of each, on the clock and of CPU time.

    Batches are not accumulated: each makes a step. The network's weights change. `say` gets remarks, such as
    that memory ran out.
    """
    timed = _TimedTask(task, steps)
    once = {"epochs": 1, "gradient_accumulation_steps": 1, "checkpoint_epochs": 0.0}
    with TemporaryDirectory() as folder:
        settings = settings.model_copy(update=once)
        train_network(network, timed, settings, Path(folder), _Remarks(say))
    return np.diff(list(timed.times.values()), axis=0)[WARM_UP:]
