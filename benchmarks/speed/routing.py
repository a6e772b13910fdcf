"""The time of a training step of capsule networks, as a ratio to a convolutional network in the same run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import psutil
import torch
from torch import Tensor, nn

from benchmarks.speed.rounds import time_in_turn
from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.config import Config
from nlpcapsule.export.exportable_paper import ExportablePaper
from nlpcapsule.export.masked_routing import route_labels_masked
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.networks.paper import PaperNetwork
from nlpcapsule.provenance import peak_process_memory
from nlpcapsule.training.optimizers import build_optimizers, clip_gradients
from nlpcapsule.training.shared_work import this_process

_VOCABULARY, _OWN = 30_000, 5  # words; labels of a document
_STEPS = 10  # timed together
_SAME_ENCODER = {"embedding_size": 100, "windows": (2, 4, 8), "filters": 128}  # that of XML-CNN


@dataclass(frozen=True)
class Case:
    """A network whose step is timed.

    Attributes:
        reference: The case that its time is divided by; None for a reference.
        system: The network's name.
        labels: Labels that each document is routed to; None is all.
        shared: Whether the documents of a batch are routed to the same labels.
        settings: Settings of the network.
    """

    reference: str | None
    system: str
    labels: int | None = None
    shared: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "xml-cnn": Case(None, "xml-cnn"),
    "label-query, encoder of xml-cnn": Case("xml-cnn", "label-query", 205, settings=_SAME_ENCODER),
    "label-query": Case("xml-cnn", "label-query", 205),
    "released-xml-cnn": Case(None, "released-xml-cnn"),
    "paper": Case("released-xml-cnn", "paper", 205, shared=True),
}


@dataclass(frozen=True)
class Batches:
    """What all cases are trained on.

    Attributes:
        documents: Documents of a batch.
        tokens: Tokens of each.
        labels: Labels in all.
    """

    documents: int
    tokens: int
    labels: int

    def draw(self, case: Case) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return made-up token ids (B, l), label ids (B, C), (C,) or None, and targets."""
        generator, device = np.random.default_rng(0), this_process().device
        tokens = generator.integers(2, _VOCABULARY, size=(self.documents, self.tokens))
        outputs = None
        if case.labels is not None:
            rows = 1 if case.shared else self.documents
            drawn = np.stack([generator.permutation(self.labels)[: case.labels] for _ in range(rows)])
            outputs = torch.from_numpy(drawn[0] if case.shared else drawn).to(device)
        targets = np.zeros((self.documents, case.labels or self.labels), dtype=np.float32)
        targets[:, :_OWN] = 1
        return torch.from_numpy(tokens).to(device), outputs, torch.from_numpy(targets).to(device)


def speed_of_routing(batches: Batches, bf16: bool, compiled: bool, rounds: int) -> list[dict[str, Any]]:
    """Time steps of all cases in turn: forward, backward, clipping and optimizer, without reading data.

    Compiled networks run adaptive routing to its limit for all documents: no step depends on a value, so that
    a GPU repeats a recorded graph.
    """
    runs, memory = {}, {}
    for name, case in CASES.items():
        make = partial(_step, case, batches, bf16, compiled)
        memory[name] = _peak_memory(make)
        runs[name] = _several(make())
    timings = time_in_turn(runs, rounds)
    rows = []
    for name, case in CASES.items():
        reference = timings[case.reference or name]
        rows.append(
            {
                "system": name,
                "reference": case.reference,
                "labels_per_document": case.labels or batches.labels,
                "milliseconds": 1000 * median(timings[name].wall) / _STEPS,
                "ratio": timings[name].ratio(reference),
                "cpu_ratio": timings[name].cpu_ratio(reference),
                "peak_memory_mib": memory[name],
            }
        )
    return rows


def _step(case: Case, batches: Batches, bf16: bool, compiled: bool) -> Callable[[], None]:
    """Return a function that makes one training step."""
    config = Config.build("labels", case.system, overrides={**case.settings, "max_tokens": batches.tokens})
    device, settings = this_process().device, config.training
    torch.manual_seed(0)
    network = build_network(config, _VOCABULARY, label_count=batches.labels).to(device).train()
    run: nn.Module = network
    if compiled:
        run = _without_stops(network)
        run.compile(mode="reduce-overhead" if device.type == "cuda" else "default")
    optimizers = build_optimizers(run, settings)
    tokens, outputs, targets = batches.draw(case)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            logits = run(tokens, outputs).logits
            loss = label_loss(settings.loss, logits, targets, None, 1.0)
        loss.backward()
        clip_gradients(run.parameters(), settings.max_grad_norm)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    return step


def _without_stops(network: nn.Module) -> nn.Module:
    """Return a network whose adaptive routing never waits for a value."""
    if isinstance(network, LabelQueryNetwork):
        network.route_labels = route_labels_masked
    if not isinstance(network, PaperNetwork):
        return network
    paper = ExportablePaper(network)
    if isinstance(paper.network.transform, PairTransforms):  # its sparse gradients cannot be compiled
        gather = torch.compiler.disable(paper.network.transform.gather)
        setattr(paper.network.transform, "gather", gather)  # noqa: B010
    return paper


def _several(step: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_STEPS):
            step()
        if this_process().device.type == "cuda":
            torch.cuda.synchronize()

    return run


def _peak_memory(make: Callable[[], Callable[[], None]]) -> int:
    """Return the most MiB that a network and its steps take, of a GPU or of a new process."""
    if this_process().device.type != "cuda":
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(_grown, make).result()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    _warm_up(make())
    return round((torch.cuda.max_memory_allocated() - before) / 2**20)


def _grown(make: Callable[[], Callable[[], None]]) -> int:
    before = psutil.Process().memory_info().rss
    _warm_up(make())
    return round((peak_process_memory() - before) / 2**20)


def _warm_up(step: Callable[[], None]) -> None:
    for _ in range(3):
        step()
