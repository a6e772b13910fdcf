"""Raw text → labels: models against Omikuji, as they are and exported to ONNX."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.speed.rounds import command_cost, medians_in_turn, time_in_turn
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import ConfigError
from nlpcapsule.evaluation.bootstrap import paired_bootstrap
from nlpcapsule.export.export_model import export_model
from nlpcapsule.export.prediction import load_for_prediction
from nlpcapsule.model_folder import add_files
from nlpcapsule.model_folder.manifest import ONNX
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import LabelModel

REFERENCE = "omikuji"
_REQUESTS = 50  # texts that are also ranked one at a time


@dataclass(frozen=True)
class Row:
    """A system's speed.

    Attributes:
        system: The model and how its network runs.
        milliseconds: Time per document, many at a time.
        ratio: Its ratio to Omikuji's.
        cpu_ratio: The ratio of CPU times.
        request_milliseconds: Median time of a document on its own.
        request_ratio: Its ratio to Omikuji's.
        process_cpu_seconds: CPU time of `nlpcapsule predict` for one document.
        process_memory_mib: Peak memory of the same.
        precision_at_1: P@1 on the documents.
        lost: Points of P@1 that an export loses, with a 95% interval; None for others.
        difference: Largest difference of an export's logits from torch's; None for others.
    """

    system: str
    milliseconds: float
    ratio: float
    cpu_ratio: float
    request_milliseconds: float
    request_ratio: float
    process_cpu_seconds: float
    process_memory_mib: float
    precision_at_1: float
    lost: tuple[float, float, float] | None = None
    difference: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row for the results file."""
        return asdict(self)


def fingerprint(file: Path) -> str:
    """Return the first digits of a file's SHA-256."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]


def facts_of(model: Path) -> dict[str, Any]:
    """Return what a model was trained on, and how its network was."""
    facts, config = (json.loads((model / f"{name}.json").read_bytes()) for name in ("facts", "config"))
    trained = {"training_documents": facts["training_documents"], "data": facts["data"]}
    if (model / "network.safetensors").exists():
        trained |= {name: config["training"][name] for name in ("epochs", "negatives", "precision")}
    return {**trained, "manifest": fingerprint(model / "manifest.json")}


def speed_of_prediction(
    omikuji: Path,
    models: Mapping[str, Path],
    documents: Sequence[Document],
    timed: int,
    one: Path,
    folder: Path,
    rounds: int,
) -> list[Row]:
    """Measure all models in one run.

    Args:
        omikuji: Omikuji's model folder.
        models: Name → a model folder with a network.
        documents: What is ranked for P@1.
        timed: How many of them are ranked for the times.
        one: A file with one document.
        folder: An empty folder for exported copies.
        rounds: Rounds that are timed.
    """
    places = {REFERENCE: omikuji, **dict(_variants(models, folder))}
    loaded = {name: _label_model(place, name) for name, place in places.items()}
    texts = [document.text for document in documents[:timed]]
    many = time_in_turn({name: _ranks(model, texts) for name, model in loaded.items()}, rounds)
    # No text is ranked twice in a row: requests differ, and what a text needs would be in the core's cache.
    requests = {name: [_ranks(model, [text]) for text in texts[:_REQUESTS]] for name, model in loaded.items()}
    single = medians_in_turn(requests, rounds)
    hits = {name: _hits(model, documents) for name, model in loaded.items()}
    rows = []
    for name, place in places.items():
        cost = command_cost("predict", str(place.absolute()), str(one), "--quiet")
        base = name.split(" ")[0]
        is_export = name != base
        rows.append(
            Row(
                name,
                1000 * median(many[name].wall) / len(texts),
                many[name].ratio(many[REFERENCE]),
                many[name].cpu_ratio(many[REFERENCE]),
                1000 * median(single[name].wall),
                single[name].ratio(single[REFERENCE]),
                cost.cpu_seconds,
                cost.peak_memory_mib,
                float(hits[name].mean()),
                _lost(hits[base], hits[name]) if is_export else None,
                _difference(loaded[base], loaded[name], texts[:_REQUESTS]) if is_export else None,
            )
        )
    return rows


def _variants(models: Mapping[str, Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each model as it is in torch, and copies that are exported in float32 and 8 bits."""
    for name, place in models.items():
        yield name, _copy(place, folder / name)
        for int8 in (False, True):
            exported = _copy(place, folder / f"{name}-{'int8' if int8 else 'float32'}")
            export_model(exported, int8)
            yield f"{name} onnx{' int8' if int8 else ''}", exported


def _copy(place: Path, target: Path) -> Path:
    """Copy a model folder without an exported network."""
    shutil.copytree(place, target)
    if (target / ONNX).is_dir():
        add_files(target, ONNX, lambda at: None)
    return target


def _label_model(place: Path, name: str) -> LabelModel:
    model = load_for_prediction(place)
    if not isinstance(model, LabelModel):
        raise ConfigError(f"{place}, given as {name}, does not rank labels")
    return model


def _ranks(model: LabelModel, texts: Sequence[str]) -> Any:
    return lambda: model.rank(texts)


def _hits(model: LabelModel, documents: Sequence[Document]) -> np.ndarray:
    """Return (N,) 1 where the first label is one of the document's."""
    ranked = model.rank([document.text for document in documents], top_k=1)
    return np.array([row[0].label in doc.labels for row, doc in zip(ranked, documents, strict=True)], float)


def _difference(model: LabelModel, exported: LabelModel, texts: Sequence[str]) -> float:
    """Return the largest difference of the logits of a network and its export."""
    tokens = model.encode(texts)
    candidates = model.scorer.candidates(tokens)
    networks = (
        each.scorer.scorer if isinstance(each.scorer, HybridScorer) else each.scorer
        for each in (model, exported)
    )
    logits, others = (network.score(tokens, candidates).log_odds for network in networks)
    return float(np.abs(logits - others).max())


def _lost(before: np.ndarray, after: np.ndarray) -> tuple[float, float, float]:
    """Return the points of P@1 lost, and the ends of the 95% interval of a paired bootstrap."""
    found = paired_bootstrap(100 * before, 100 * after)
    return found.difference, found.low, found.high
