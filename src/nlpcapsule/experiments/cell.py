"""One cell of a comparison: one system, one seed, trained, selected and reported."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nlpcapsule import __version__
from nlpcapsule.atomic_files import atomic_path, write_text
from nlpcapsule.config import Config
from nlpcapsule.dataset.encoded import EncodedDocuments
from nlpcapsule.evaluation.label_metrics import per_document_metrics
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.experiments.provenance import hardware
from nlpcapsule.ranking.documents import RANKED
from nlpcapsule.ranking.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def run_cell(
    parts: EncodedParts, system: str, model: str, settings: dict[str, Any], seed: int, path: Path
) -> dict[str, Any]:
    """Trains a system and writes its figures; a cell that is written already is only read.

    Args:
        parts: The data.
        system: The system's name in the table.
        model: The network's name.
        settings: Settings that differ from the network's defaults.
        seed: The seed.
        path: The JSON file; figures per document go beside it as .npy, for paired tests.
    """
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    config = Config.build("labels", model, overrides={**settings, "training.seed": seed})
    length = config.text.max_tokens
    train, select, report = (_cut(part, length) for part in (parts.train, parts.select, parts.report))
    data = PreparedLabels(parts.tokenizer, parts.labels, train, select, parts.vectors)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, TrainingProgress() as progress:
        trained = fit_labels(data, config, RunFolder(Path(folder)), progress)
        seconds = time.perf_counter() - started
        history = (Path(folder) / "metrics.jsonl").read_text(encoding="utf-8")
    started = time.perf_counter()
    rankings = trained.rank_tokens(report.tokens, RANKED)
    ranking_seconds = time.perf_counter() - started
    truth = list(report.labels)
    figures = trained.evaluate(report, rankings)
    iterations = None if rankings.iterations is None else np.bincount(rankings.iterations).tolist()
    record = {
        "system": system,
        "model": model,
        "seed": seed,
        "figures": figures,
        "selected on": trained.facts["dev"],
        "epochs": [json.loads(line) for line in history.splitlines()],
        "training seconds": round(seconds, 1),
        "milliseconds per document": round(1000 * ranking_seconds / len(report), 3),
        "parameters": _parameters(trained),
        "documents by routing iterations": iterations,
        "gpu memory GiB": _gpu_memory(),
        "config": json.loads(config.model_dump_json()),
        "data": parts.fingerprint(),
        "hardware": hardware(),
        "nlpcapsule": __version__,
    }
    per_document = per_document_metrics(rankings.labels, truth)
    with atomic_path(path.with_suffix(".npy")) as temporary, temporary.open("wb") as file:
        np.save(file, np.stack([per_document[name] for name in ("P@1", "P@3", "P@5", "nDCG@5")]))
    write_text(path, json.dumps(record, indent=1) + "\n")
    return record


def _parameters(model: LabelModel) -> int | None:
    """Numbers a network learns; a lexical system has no such count."""
    return None if model.network is None else sum(weights.numel() for weights in model.network.parameters())


def _cut(part: EncodedDocuments, length: int) -> EncodedDocuments:
    return EncodedDocuments(part.tokens.cut(length), part.labels)


def _gpu_memory() -> float | None:
    if not torch.cuda.is_available():
        return None
    return round(torch.cuda.max_memory_allocated() / 2**30, 2)
