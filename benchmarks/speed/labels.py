"""The time of a training step as the number of labels grows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
import psutil
import torch
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.networks.build import build_network
from nlpcapsule.provenance import peak_process_memory
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.plan import time_steps
from nlpcapsule.training.row_updates import choose_row_updates, row_tables
from nlpcapsule.training.shared_work import this_process

_VOCABULARY, _TOKENS, _OWN = 30_000, 300, 5  # words, words and labels of a document
_STEPS = 8  # timed in a round


def speed_of_labels(counts: Sequence[int], config: Config, rounds: int) -> list[dict[str, Any]]:
    """Time steps on made-up documents, in turn for each number of labels; the first is the reference.

    A step reads, updates and clips as in a training with hard negatives, which are drawn at random here. Peak
    memory is that of weights, optimizer and batch; give counts in ascending order.
    """
    networks, tasks, memory = {}, {}, {}
    for count in counts:
        before = _memory_now()
        tasks[count] = _task(config, count)
        networks[count] = build_network(config, _VOCABULARY, label_count=count)
        time_steps(networks[count], tasks[count], config.training, 1)
        memory[count] = _peak_memory() - before
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count in counts:
            steps = time_steps(networks[count], tasks[count], config.training, _STEPS)
            seconds[count].append(float(np.median(steps)))
    reference = seconds[counts[0]]
    return [
        {
            "labels": count,
            "milliseconds": 1000 * median(seconds[count]),
            "ratio": median(own / first for own, first in zip(seconds[count], reference, strict=True)),
            "peak_memory_mib": round(memory[count] / 2**20),
            "updated": "by row" if _is_by_row(networks[count], config) else "whole",
        }
        for count in counts
    ]


def _memory_now() -> int:
    """Return the bytes of tensors on the GPU, whose peak is forgotten, or of the process without one."""
    if this_process().device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    return psutil.Process().memory_info().rss


def _peak_memory() -> int:
    is_gpu = this_process().device.type == "cuda"
    return torch.cuda.max_memory_allocated() if is_gpu else peak_process_memory()


def _is_by_row(network: nn.Module, config: Config) -> bool:
    choose_row_updates(network, config.training)
    return bool(row_tables(network))


def _task(config: Config, count: int) -> LabelTask:
    generator = np.random.default_rng(0)
    batch, width = config.training.batch_size, config.training.negative_count
    documents = batch * _STEPS
    tokens = Ragged.from_rows(generator.integers(2, _VOCABULARY, size=(documents, _TOKENS)))
    labels = Ragged.from_rows(generator.integers(0, count, size=(documents, _OWN)))
    candidates = generator.integers(0, count, size=(documents, width))
    vocabulary = LabelVocabulary([str(label) for label in range(count)], [1] * count)
    return LabelTask(config, EncodedDocuments(tokens, labels), None, vocabulary, train_candidates=candidates)
