"""The time of a training step as labels or tokens grow."""

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

TOKENS = 300  # of a document, unless they are what grows
_VOCABULARY, _OWN = 30_000, 5  # words; labels of a document
_STEPS = 8  # timed in a round


def speed_of_steps(points: Sequence[tuple[int, int]], config: Config, rounds: int) -> list[dict[str, Any]]:
    """Time steps on made-up documents, in turn for each (labels, tokens); the first is the reference.

    A step reads, updates and clips as in a training with hard negatives, which are drawn at random here. Peak
    memory is that of weights, optimizer and batch; give points in ascending order.
    """
    networks, tasks, memory = {}, {}, {}
    for point in points:
        before = _memory_now()
        tasks[point] = _task(config, *point)
        networks[point] = build_network(config, _VOCABULARY, label_count=point[0])
        time_steps(networks[point], tasks[point], config.training, 1)
        memory[point] = _peak_memory() - before
    seconds: dict[tuple[int, int], list[float]] = {point: [] for point in points}
    for _ in range(rounds):
        for point in points:
            steps = time_steps(networks[point], tasks[point], config.training, _STEPS)
            seconds[point].append(float(np.median(steps)))
    reference = seconds[points[0]]
    return [
        {
            "labels": point[0],
            "tokens": point[1],
            "milliseconds": 1000 * median(seconds[point]),
            "ratio": median(own / first for own, first in zip(seconds[point], reference, strict=True)),
            "peak_memory_mib": round(memory[point] / 2**20),
            "updated": "by row" if _is_by_row(networks[point], config) else "whole",
        }
        for point in points
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


def _task(config: Config, count: int, length: int) -> LabelTask:
    generator = np.random.default_rng(0)
    batch, width = config.training.batch_size, config.training.negative_count
    documents = batch * _STEPS
    tokens = Ragged.from_rows(generator.integers(2, _VOCABULARY, size=(documents, length)))
    labels = Ragged.from_rows(generator.integers(0, count, size=(documents, _OWN)))
    candidates = generator.integers(0, count, size=(documents, width))
    vocabulary = LabelVocabulary([str(label) for label in range(count)], [1] * count)
    return LabelTask(config, EncodedDocuments(tokens, labels), None, vocabulary, train_candidates=candidates)
