"""The time of a training step as labels or tokens grow."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import psutil
import torch
from torch import nn

from benchmarks.speed.rounds import Timing
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
    memory is that of weights, optimizer and batch.
    """
    memory = {point: _peak_memory(config, point) for point in points}
    tasks = {point: _task(config, *point) for point in points}
    networks = {point: build_network(config, _VOCABULARY, label_count=point[0]) for point in points}
    timings = {point: Timing([], []) for point in points}
    for _ in range(rounds):
        for point in points:
            steps = time_steps(networks[point], tasks[point], config.training, _STEPS)  # (steps, 2)
            wall, cpu = np.median(steps, axis=0).tolist()
            timings[point].wall.append(wall)
            timings[point].cpu.append(cpu)
    reference = timings[points[0]]
    return [
        {
            "labels": point[0],
            "tokens": point[1],
            "milliseconds": 1000 * median(timings[point].wall),
            "ratio": timings[point].ratio(reference),
            "cpu_milliseconds": 1000 * median(timings[point].cpu),
            "cpu_ratio": timings[point].cpu_ratio(reference),
            "peak_memory_mib": round(memory[point] / 2**20),
            "updated": "by row" if _is_by_row(networks[point], config) else "whole",
        }
        for point in points
    ]


def _peak_memory(config: Config, point: tuple[int, int]) -> int:
    """Return the bytes that a step takes at its peak: of tensors on a GPU, else of a process of its own."""
    if this_process().device.type == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        _one_step(config, point)
        return torch.cuda.max_memory_allocated() - before
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_grown, config, point).result()


def _grown(config: Config, point: tuple[int, int]) -> int:
    before = psutil.Process().memory_info().rss
    _one_step(config, point)
    return peak_process_memory() - before


def _one_step(config: Config, point: tuple[int, int]) -> None:
    network = build_network(config, _VOCABULARY, label_count=point[0])
    time_steps(network, _task(config, *point), config.training, 1)


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
