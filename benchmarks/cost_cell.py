"""Measure the cost of one system in this process, on random documents and random weights.

python -m benchmarks.cost_cell SPEC PATH COMMIT      a `Spec` as JSON; the JSON file to write
"""

from __future__ import annotations

import gc
import json
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.cost_record import SEED, CostRecord, Spec
from nlpcapsule import __version__
from nlpcapsule.config import Config
from nlpcapsule.data.outputs import all_outputs, batch_outputs, uniform_outputs
from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.networks.build import build_network
from nlpcapsule.networks.losses import label_loss
from nlpcapsule.processes import end_with_parent
from nlpcapsule.provenance import hardware, peak_process_memory
from nlpcapsule.scoring.build import nominator_config
from nlpcapsule.training.optimizers import build_optimizers

_FEWEST = 3  # minimum number of timed batches
_MEMORY_SHARE = 0.9  # fraction of the machine's free memory that may be used


def measure(spec: Spec, commit: str = "") -> CostRecord:
    """Measure a system in this process, which must be fresh."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = Config.build(spec.kind, spec.model, overrides={**spec.settings, "training.seed": SEED})
    _wake_torch()
    before = _peak_memory(device)
    if device.type == "cpu":
        refuse_more_memory_than_there_is()
    work = (_LabelWork if spec.kind == "labels" else _AnswerWork)(spec, config, device)
    optimizers = build_optimizers(work.network, config.training)

    def train() -> None:
        work.loss().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    training = _timed(train, spec, device)
    peak = _peak_memory(device) - before
    work.network.zero_grad()
    gc.collect()
    work.network.eval()
    with torch.inference_mode():
        inference = _timed(work.ranking(), spec, device)
    everything = sum(weights.numel() for weights in work.network.parameters())
    words = sum(layer.weight.numel() for layer in work.network.modules() if isinstance(layer, nn.Embedding))
    return CostRecord(
        spec=spec,
        parameters=everything,
        parameters_without_word_vectors=everything - words,
        training=training,
        inference=inference,
        peak_memory_mib=None if "out of memory" in training else round(peak / 2**20, 1),
        routing_iterations=work.iterations,
        hardware=hardware(),
        version=__version__,
        commit=commit,
    )


class _LabelWork:
    """A label network and one batch of random documents."""

    def __init__(self, spec: Spec, config: Config, device: torch.device) -> None:
        generator = np.random.default_rng(SEED)
        self.spec, self.config, self.device = spec, config, device
        self.tokens = _random_tokens(generator, spec.batch, spec, config, device)  # (B, l)
        own = [generator.choice(spec.labels, spec.own_labels, replace=False) for _ in range(spec.batch)]
        match config.training.negatives:
            case "uniform":
                outputs = uniform_outputs(own, spec.labels, config.training.negative_count, generator)
            case "batch":
                outputs = batch_outputs(own, spec.labels)
            case _:
                outputs = all_outputs(own, spec.labels)
        self.ids, self.targets, self.valid = (
            None if array is None else torch.from_numpy(array).to(device)
            for array in (outputs.ids, outputs.targets, outputs.valid)
        )
        self.network = build_network(config, spec.vocabulary, label_count=spec.labels).to(device).train()
        self.iterations: float | None = None

    def loss(self) -> Tensor:
        assert self.targets is not None
        scored = self.network(self.tokens, self.ids, self.valid)
        if self.iterations is None and scored.iterations is not None:
            self.iterations = round(float(scored.iterations.float().mean()), 2)
        return label_loss(self.config.training.loss, scored.logits, self.targets, self.valid)

    def ranking(self) -> Callable[[], object]:
        """Return a ranking step of a finished model: over all labels, or those a Kim-CNN nominates."""
        candidates = min(self.config.inference.candidates, self.spec.labels)
        if not candidates:
            return lambda: self.network(self.tokens)
        beside = nominator_config(self.config)
        nominator = (
            build_network(beside, self.spec.vocabulary, label_count=self.spec.labels).to(self.device).eval()
        )
        return lambda: self.network(self.tokens, nominator(self.tokens).logits.topk(candidates).indices)


class _AnswerWork:
    """An answer network and one batch of random pairs."""

    iterations = None  # these networks do not report iterations

    def __init__(self, spec: Spec, config: Config, device: torch.device) -> None:
        generator = np.random.default_rng(SEED)
        self.kind = config.training.loss
        self.questions, self.answers = (
            _random_tokens(generator, spec.batch, spec, config, device) for _ in range(2)
        )
        self.question_of = torch.arange(spec.batch, device=device)
        self.marks = torch.from_numpy(generator.integers(0, 2, spec.batch)).to(device)
        idf = np.ones(spec.vocabulary, dtype=np.float32)
        self.network = build_network(config, spec.vocabulary, idf=idf).to(device).train()

    def loss(self) -> Tensor:
        return answer_loss(self.kind, self.ranking()(), self.marks, self.question_of)

    def ranking(self) -> Callable[[], Tensor]:
        return lambda: self.network(self.questions, self.answers, self.question_of)


def _random_tokens(
    generator: np.random.Generator, count: int, spec: Spec, config: Config, device: torch.device
) -> Tensor:
    """Return random token ids (count, l) without padding."""
    return torch.from_numpy(generator.integers(1, spec.vocabulary, (count, config.text.max_tokens))).to(
        device
    )


def _timed(run: Callable[[], object], spec: Spec, device: torch.device) -> dict[str, Any]:
    """Return the median time of a batch, or that memory was too small."""
    times: list[float] = []
    begun = time.perf_counter()
    try:
        for _ in range(spec.warm_up + spec.repeats):
            started = time.perf_counter()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
            if len(times) >= spec.warm_up + _FEWEST and time.perf_counter() - begun > spec.seconds:
                break
    except (RuntimeError, MemoryError) as error:  # what torch and numpy raise
        asked = asked_for(error)
        if asked is None:
            raise
        return {"out of memory": asked}
    timed = times[spec.warm_up :]
    return {"milliseconds": round(1000 * statistics.median(timed), 3), "batches": len(timed)}


def asked_for(error: Exception) -> str | None:
    """Return a description of the memory that could not be allocated; None for any other error.

    Example:
        >>> asked_for(RuntimeError("can't allocate memory: you tried to allocate 7516192768 bytes."))
        'asked for 7.00 GiB'
    """
    found = re.search(r"(?:tried|unable) to allocate ([\d.]+) ?([KMGT]i?B|bytes)", str(error), re.IGNORECASE)
    if found:
        amount, unit = float(found[1]), found[2]
        return f"asked for {amount / 2**30:.2f} GiB" if unit == "bytes" else f"asked for {amount:g} {unit}"
    is_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or "bad_alloc" in str(error)
    return "asked for more than there is" if is_memory else None


def refuse_more_memory_than_there_is() -> None:
    """Make allocations fail that would otherwise get this process, or another one, killed."""
    about = Path("/proc/meminfo")
    found = re.search(r"MemAvailable:\s+(\d+) kB", about.read_text("utf-8")) if about.exists() else None
    if found:
        bounds = [
            limit for limit in resource.getrlimit(resource.RLIMIT_DATA) if limit != resource.RLIM_INFINITY
        ]
        limit = min(_MEMORY_SHARE * 2**10 * int(found[1]), *bounds, sys.maxsize)
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit), resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _wake_torch() -> None:
    """Run a tiny step, so that torch's first-time memory is not counted for the network."""
    weights = torch.ones(2, 2, requires_grad=True)
    (weights @ weights).sum().backward()
    torch.optim.AdamW([weights], fused=True).step()


def _peak_memory(device: torch.device) -> int:
    """Return the peak memory in bytes: of tensors on a GPU, else of the whole process."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else peak_process_memory()


if __name__ == "__main__":
    end_with_parent()
    measure(Spec(**json.loads(sys.argv[1])), commit=sys.argv[3]).save(Path(sys.argv[2]))
