"""Candidates and epochs on generated data with tens or hundreds of thousands of labels."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.generated import GeneratedLabels
from benchmarks.speed.usage import Usage
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

    def to_json(self) -> dict[str, Any]:
        """Return the record for the results file."""
        return asdict(self)


def cost_of_training(data: GeneratedLabels, folder: Path, options: TrainingOptions) -> TrainingCost:
    """Train the small preset on generated documents, in a process of its own, and evaluate it.

    Args:
        data: The documents.
        folder: An empty folder for data and model.
        options: How the model is trained.
    """
    began = time.perf_counter()
    train, dev, model = folder / "train.jsonl", folder / "dev.jsonl", folder / "model"
    data.write(train)
    others = data.others(min(_DEV, data.documents))
    others.write(dev)
    generated = time.perf_counter() - began
    words = [*module_command("nlpcapsule"), "train", str(train), "--dev", str(dev), "--output", str(model)]
    words += ["--preset", "small", "--epochs", str(options.epochs), "--device", options.device]
    words += ["--threads", str(thread_count())]
    words += ["--set", f"batch_size={options.batch_size}", "--set", "checkpoint_epochs=0"]
    times, usage, machine = _run(words, [_NOMINATED, _EPOCH.format(1)])
    recall, lexical, hybrid = _accuracy(model, others.others(min(_TEST, data.documents)))
    gpu = usage.peak_gpu_memory
    return TrainingCost(
        len(json.loads((model / "labels.json").read_text(encoding="utf-8"))),
        data.recall_ceiling,
        data.precision_ceiling,
        recall,
        lexical,
        hybrid,
        generated,
        times[_NOMINATED],
        times[_EPOCH.format(1)] - times[_NOMINATED],
        times[""],
        usage.cpu_seconds,
        usage.peak_memory / 2**30,
        usage.peak_resident / 2**30,
        None if gpu is None else gpu / 2**30,
        machine,
    )


def _run(words: list[str], marks: list[str]) -> tuple[dict[str, float], Usage, dict[str, Any]]:
    """Run a command; return when lines with marks and its end (an empty mark) were seen, and its usage."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    usage, lines = Usage(process.pid), []
    times: dict[str, float] = {}
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        for mark in marks:
            if mark in line:
                times.setdefault(mark, time.perf_counter() - began)
    code = process.wait()
    machine = usage.stop()
    if code:
        raise NlpCapsuleError(f"the training ended with {code}: {''.join(lines[-12:])}")
    return {**times, "": time.perf_counter() - began}, usage, machine


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
