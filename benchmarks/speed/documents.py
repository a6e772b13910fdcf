"""Candidates and epochs on generated data with tens or hundreds of thousands of labels."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.generated import GeneratedLabels
from benchmarks.speed.usage import Usage
from nlpcapsule.atomic_files import write_text
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.lexical.candidates import candidate_recall
from nlpcapsule.model_folder import load_model
from nlpcapsule.processes import module_command
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES, HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.threads import thread_count

_NOMINATED = "candidates: "  # the line that `train` prints once labels are nominated
_EPOCH = "epoch {}"
_RUNS = "runs.json"  # of a folder: what each run has taken so far
_KEPT_EVERY = 2  # seconds
_DEV, _TEST = 5_000, 2_000  # further documents: to fit the fusion on, and to report


@dataclass(frozen=True)
class TrainingOptions:
    """How a model is trained."""

    epochs: int = 1
    device: str = "auto"
    batch_size: int = 32


@dataclass(frozen=True)
class TrainingCost:
    """The cost of a training, and what it reaches on documents that it never saw."""

    labels: int  # of the training part
    recall_ceiling: float  # labels that leave words in the text
    precision_ceiling: float  # the P@1 of a system that knows every label's words
    candidate_recall: float  # recall@200 of the lexical system
    lexical_precision_at_1: float  # of the lexical system alone: the linear baseline
    precision_at_1: float  # of the hybrid
    generation_seconds: float
    candidates_seconds: float  # from the start to the nomination of hard negatives and candidates
    epoch_seconds: float  # from then to the end of the first epoch
    training_seconds: float  # all, to the saved model
    cpu_seconds: float  # of all processes
    peak_memory_gib: float  # of all processes together, without mapped files
    peak_resident_gib: float  # the same with them, counted in each process
    peak_gpu_memory_gib: float | None  # in use on the GPU
    machine: dict[str, Any]  # its cores, and how many of them this training and others used on average
    runs: int  # 1, or more if the training was stopped and resumed; times are those of all together

    def to_json(self) -> dict[str, Any]:
        """Return the record for the results file."""
        return asdict(self)


def cost_of_training(data: GeneratedLabels, folder: Path, options: TrainingOptions) -> TrainingCost:
    """Train the small preset on generated documents, in a process of its own, and evaluate it.

    Args:
        data: The documents.
        folder: A folder for data and model: empty, or with what an earlier call has left that was stopped.
        options: How the model is trained.
    """
    train, dev, model, kept = (folder / name for name in ("train.jsonl", "dev.jsonl", "model", _RUNS))
    others = data.others(min(_DEV, data.documents))
    if not kept.exists():
        began = time.perf_counter()
        data.write(train)
        others.write(dev)
        generated = {"seconds": time.perf_counter() - began, "data": asdict(data), "options": asdict(options)}
        write_text(kept, json.dumps([generated]))
    generated, *earlier = json.loads(kept.read_text(encoding="utf-8"))
    if generated["data"] != asdict(data) or generated["options"] != asdict(options):
        raise NlpCapsuleError(f"{kept}: of a training with other options; name another folder")
    words = [*module_command("nlpcapsule"), "train", str(train), "--dev", str(dev), "--output", str(model)]
    words += ["--preset", "small", "--epochs", str(options.epochs), "--device", options.device]
    words += ["--threads", str(thread_count())]
    words += ["--set", f"batch_size={options.batch_size}", "--set", "checkpoint_epochs=0"]
    words += ["--resume"] if model.exists() else []
    marks = [_NOMINATED, _EPOCH.format(1)]
    now = _run(words, marks, lambda run: write_text(kept, json.dumps([generated, *earlier, run])))
    runs = [*earlier, now]
    nominated, first_epoch = (_seconds_until(mark, runs) for mark in marks)
    recall, lexical, hybrid = _accuracy(model, others.others(min(_TEST, data.documents)))
    gpu = [run["peak_gpu_memory"] for run in runs if run["peak_gpu_memory"] is not None]
    return TrainingCost(
        len(json.loads((model / "labels.json").read_text(encoding="utf-8"))),
        data.recall_ceiling,
        data.precision_ceiling,
        recall,
        lexical,
        hybrid,
        generated["seconds"],
        nominated,
        first_epoch - nominated,
        sum(run["seconds"] for run in runs),
        sum(run["cpu_seconds"] for run in runs),
        max(run["peak_memory"] for run in runs) / 2**30,
        max(run["peak_resident"] for run in runs) / 2**30,
        max(gpu) / 2**30 if gpu else None,
        now["machine"],
        len(runs),
    )


def _seconds_until(mark: str, runs: Sequence[Mapping[str, Any]]) -> float:
    """Return when a line with a mark was first seen, counted over all runs."""
    before = 0.0
    for run in runs:
        if mark in run["marks"]:
            return before + float(run["marks"][mark])
        before += run["seconds"]
    raise NlpCapsuleError(f"the training never printed {mark!r}")


def _run(words: list[str], marks: list[str], keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a command; return its seconds, when lines with marks were seen, and its usage, kept meanwhile."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    usage, lines = Usage(process.pid), []
    times: dict[str, float] = {}
    ended = threading.Event()

    def so_far() -> dict[str, Any]:
        usages = {name: getattr(usage, name) for name in ("cpu_seconds", "peak_memory", "peak_resident")}
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "marks": dict(times), **usages, "peak_gpu_memory": usage.peak_gpu_memory}

    def keep_often() -> None:
        while not ended.wait(_KEPT_EVERY):
            keep(so_far())

    keeper = threading.Thread(target=keep_often, daemon=True)
    keeper.start()
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        for mark in marks:
            if mark in line:
                times.setdefault(mark, time.perf_counter() - began)
    code = process.wait()
    ended.set()
    keeper.join()
    found = {**so_far(), "machine": usage.stop()}
    if code:
        raise NlpCapsuleError(f"the training ended with {code}: {''.join(lines[-12:])}")
    return found


def _accuracy(folder: Path, test: GeneratedLabels) -> tuple[float, float, float]:
    """Return recall@200 and P@1 of the lexical system, and P@1 of the hybrid, on documents."""
    model = load_model(folder)
    if not isinstance(model, LabelModel) or not isinstance(model.scorer, HybridScorer):
        raise NlpCapsuleError(f"{folder}: expected a hybrid; the data may be too few to fit one")
    documents = encode_documents(test, model.tokenizer, model.labels, model.config.text.max_tokens)
    nominated = model.scorer.lexical.top(documents.tokens, CANDIDATES)[0]
    ranked = model.rank_tokens(documents.tokens, 1).labels
    recall = candidate_recall(nominated, documents.labels, len(model.labels))

    def precision(first: np.ndarray) -> float:
        return float(
            np.mean([int(np.isin(label, own)) for label, own in zip(first, documents.labels, strict=True)])
        )

    return recall or 0.0, precision(nominated[:, 0]), precision(ranked[:, 0])
