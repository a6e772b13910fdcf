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
from nlpcapsule.baselines.released_xml_cnn import ReleasedXMLCNN
from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.config import Config
from nlpcapsule.export.masked_routing import route_labels_masked
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.embedding_convolution import EmbeddingConvolution
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.networks.paper import PaperNetwork
from nlpcapsule.provenance import peak_process_memory
from nlpcapsule.training.optimizers import build_optimizers, clip_gradients
from nlpcapsule.training.shared_work import this_process

_VOCABULARY, _OWN = 30_000, 5  # words; labels of a document
_STEPS = 10  # timed together
_SAME_ENCODER = {"embedding_size": 100, "windows": (2, 4, 8), "filters": 128}  # that of XML-CNN
_SAME_WORDS = {"embedding_size": 300}  # as `paper`
_FASTER = "released-xml-cnn, convolution of paper"


@dataclass(frozen=True)
class Case:
    """A network whose step is timed.

    Attributes:
        reference: The case that its time is divided by; None for a reference.
        system: The network's name.
        labels: Labels that each document is routed to; None is all.
        shared: Whether the documents of a batch are routed to the same labels.
        settings: Settings of the network.
        alike: A second reference, with the same convolution.
        as_released: Whether torch convolves, once per width, as in the released code.
    """

    reference: str | None
    system: str
    labels: int | None = None
    shared: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    alike: str | None = None
    as_released: bool = False


# A trained network takes three to five iterations of adaptive routing (results/figure-routing.json),
# and at most ten. Made-up votes settle at once, so a fixed number is timed.
CASES = {
    "xml-cnn": Case(None, "xml-cnn"),
    "label-query, encoder of xml-cnn": Case("xml-cnn", "label-query", 205, settings=_SAME_ENCODER),
    "label-query": Case("xml-cnn", "label-query", 205),
    "released-xml-cnn": Case(None, "released-xml-cnn", settings=_SAME_WORDS, as_released=True),
    _FASTER: Case("released-xml-cnn", "released-xml-cnn", settings=_SAME_WORDS),
    **{
        f"paper, {iterations} iterations": Case(
            "released-xml-cnn",
            "paper",
            205,
            shared=True,
            settings={"routing": "kde", "iterations": iterations},
            alike=_FASTER,
        )
        for iterations in (3, 5, 10)
    },
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
            drawn.sort(axis=1)
            outputs = torch.from_numpy(drawn[0] if case.shared else drawn).to(device)
        targets = np.zeros((self.documents, case.labels or self.labels), dtype=np.float32)
        targets[:, :_OWN] = 1
        return torch.from_numpy(tokens).to(device), outputs, torch.from_numpy(targets).to(device)


def speed_of_routing(batches: Batches, bf16: bool, compiled: bool, rounds: int) -> list[dict[str, Any]]:
    """Time steps of all cases in turn: forward, backward, clipping and optimizer, without reading data.

    On a GPU, steps of compiled networks are timed twice: launched from Python, operation by operation, and
    recorded once, from the forward pass to the optimizer, and repeated (a CUDA graph).
    """
    on_gpu = this_process().device.type == "cuda"
    launched, recorded, memory = {}, {}, {}
    for name, case in CASES.items():
        make = partial(_step, case, batches, bf16, compiled)
        step, memory[name] = _measured_on_gpu(make) if on_gpu else (make(), _peak_memory(make))
        launched[name] = _several(step)
        if on_gpu and compiled:
            recorded[name] = _several(_record(step))
    timings = {"launched": time_in_turn(launched, rounds), "recorded": time_in_turn(recorded, rounds)}
    rows = []
    for name, case in CASES.items():
        row: dict[str, Any] = {
            "system": name,
            "reference": case.reference,
            "labels_per_document": case.labels or batches.labels,
            "peak_memory_mib": memory[name],
        }
        for kind, of in timings.items():
            if of:
                row[f"{kind}_milliseconds"] = 1000 * median(of[name].wall) / _STEPS
                row[f"{kind}_ratio"] = of[name].ratio(of[case.reference or name])
                if case.alike:
                    row[f"{kind}_ratio_alike"] = of[name].ratio(of[case.alike])
        rows.append(row)
    return rows


def _step(case: Case, batches: Batches, bf16: bool, compiled: bool) -> Callable[[], None]:
    """Return a function that makes one training step."""
    config = Config.build("labels", case.system, overrides={**case.settings, "max_tokens": batches.tokens})
    device, settings = this_process().device, config.training
    torch.manual_seed(0)
    network = build_network(config, _VOCABULARY, label_count=batches.labels).to(device).train()
    if case.as_released:
        assert isinstance(network, ReleasedXMLCNN)
        _convolve_as_released(network.convolution)
    if compiled:
        _compile(network)
    optimizers = build_optimizers(network, settings)
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        group["capturable"] = device.type == "cuda"  # so that steps can be recorded
    tokens, outputs, targets = batches.draw(case)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            logits = network(tokens, outputs).logits
            loss = label_loss(settings.loss, logits, targets, None, 1.0)
        loss.backward()
        clip_gradients(network.parameters(), settings.max_grad_norm)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    return step


def _convolve_as_released(convolution: EmbeddingConvolution) -> None:
    layers = convolution.convolutions
    plain = {
        "lookup": lambda tokens, embedding: embedding(convolution.fit(tokens))[0],
        "forward": lambda words: [layer(words) for layer in layers],
    }
    for name, method in plain.items():
        setattr(convolution, name, method)


def _compile(network: nn.Module) -> None:
    """Compile a network; of `paper` all but gathering rows, and routing, which has its own kernels."""
    if isinstance(network, LabelQueryNetwork):
        network.route_labels = route_labels_masked  # never waits for a value
    if not isinstance(network, PaperNetwork):
        network.compile()
        return
    network.document.compile()
    if isinstance(network.transform, PairTransforms):
        gather = torch.compiler.disable(network.transform.gather)  # sparse gradients cannot be compiled
        setattr(network.transform, "gather", gather)  # noqa: B010
        network.transform.compile()


def _record(step: Callable[[], None]) -> Callable[[], None]:
    """Return a function that repeats the operations of a step, without the time to launch each."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        _warm_up(step)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _several(step: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_STEPS):
            step()
        if this_process().device.type == "cuda":
            torch.cuda.synchronize()

    return run


def _measured_on_gpu(make: Callable[[], Callable[[], None]]) -> tuple[Callable[[], None], int]:
    """Return a step, and the most MiB that its network and it take."""
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step = make()
    _warm_up(step)
    return step, round((torch.cuda.max_memory_allocated() - before) / 2**20)


def _peak_memory(make: Callable[[], Callable[[], None]]) -> int:
    """Return the most MiB that a network and its steps take, in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_grown, make).result()


def _grown(make: Callable[[], Callable[[], None]]) -> int:
    before = psutil.Process().memory_info().rss
    _warm_up(make())
    return round((peak_process_memory() - before) / 2**20)


def _warm_up(step: Callable[[], None]) -> None:
    for _ in range(3):
        step()
