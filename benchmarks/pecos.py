"""PECOS XR-Linear as a peer: trained by another Python on our tf-idf, through a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from scipy import sparse

from benchmarks.cell import Cell, CellRecord
from benchmarks.encoded_parts import EncodedParts
from benchmarks.run_labels import training_data
from benchmarks.run_record import RunRecord
from nlpcapsule import processes
from nlpcapsule.compare.measuring import Measured, label_figures
from nlpcapsule.config.settings import Settings
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ConfigError, NlpCapsuleError
from nlpcapsule.evaluation.label_metrics import label_metrics
from nlpcapsule.evaluation.ranked import NO_LABEL
from nlpcapsule.evaluation.thresholds import best_threshold
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.ranker import label_matrix
from nlpcapsule.scoring.documents import LabelRankings

PECOS = "pecos"
PECOS_PYTHON = "NLPCAPSULE_PECOS_PYTHON"  # environment variable: the Python that has libpecos
INSTALL = (
    "python3.11 -m venv pecos-venv && pecos-venv/bin/pip install 'libpecos==1.2.8' 'numpy<2', then "
    f"export {PECOS_PYTHON}=pecos-venv/bin/python"
)
_SCRIPT = Path(__file__).with_name("pecos_script.py")


class PecosSettings(Settings):
    """XR-Linear (Yu et al. 2022): a tree of label clusters, a linear model per node; on our tf-idf."""

    max_tokens: int = Field(1000, ge=1, description="maximum tokens of a document")
    splits: int = Field(16, ge=2, description="children of a node")
    largest_leaf: int = Field(100, ge=2, description="maximum labels in a leaf")
    C: float = Field(1.0, gt=0, description="weight of the loss; larger values regularise less")
    smallest_weight: float = Field(0.1, ge=0, description="weights below this are dropped")
    beam: int = Field(10, ge=1, description="nodes kept per level when ranking")


def run_peer(cell: Cell, parts: EncodedParts) -> Measured:
    """Train and measure PECOS.

    Args:
        cell: Its settings and seed.
        parts: The data.

    Returns:
        The record, and metrics per document (4, documents).
    """
    train = training_data(parts, cell.fraction)
    parts = replace(parts, labels=train.labels, train=train.train)
    settings = PecosSettings.model_validate(cell.settings)
    record, rankings, report = run_pecos(parts, settings, cell.seed, pecos_python())
    record_json = CellRecord.of(cell, record.to_json(), network_only=None).to_json()
    return record_json, label_figures(rankings, report)


def rankings_of(scores: sparse.csr_matrix) -> LabelRankings:
    """Rank the labels of each row (N, n) by score; ties are broken by label id, rows are padded with -1.

    Example:
        >>> rankings_of(sparse.csr_matrix([[0.0, 0.2, 0.9], [0.5, 0.0, 0.0]])).labels.tolist()
        [[2, 1], [0, -1]]
    """
    rows = sparse.csr_matrix(scores)
    width = int(np.diff(rows.indptr).max(initial=0))
    labels = np.full((rows.shape[0], width), NO_LABEL, dtype=np.int64)
    ordered = np.zeros((rows.shape[0], width), dtype=np.float32)
    for row, (start, end) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        best = np.lexsort((rows.indices[start:end], -rows.data[start:end]))
        labels[row, : end - start] = rows.indices[start:end][best]
        ordered[row, : end - start] = rows.data[start:end][best]
    return LabelRankings(labels, ordered.clip(0, 1))


def pecos_python() -> str:
    """Return the Python that runs PECOS: the one that the environment names, or this one.

    Raises:
        ConfigError: If it cannot be run or has no libpecos.
    """
    given = os.environ.get(PECOS_PYTHON)
    if given is None and find_spec("pecos") is not None:
        return sys.executable
    path = None if given is None else shutil.which(given)
    if path is None:
        problem = f"{PECOS_PYTHON} is not set" if given is None else f"{given}: there is no such program"
        raise ConfigError(f"PECOS needs libpecos in a separate Python, but {problem}; to make one: {INSTALL}")
    path = str(Path(path).absolute())
    command = [path, "-c", "import pecos.xmc"]
    with tempfile.TemporaryDirectory() as empty:  # older Pythons have no -P to exclude the working folder
        asked = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False)
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise ConfigError(f"{PECOS_PYTHON}={given} cannot import libpecos ({last}); to make one: {INSTALL}")
    return path


def run_pecos(
    parts: EncodedParts, settings: PecosSettings, seed: int, python: str
) -> tuple[RunRecord, LabelRankings, EncodedDocuments]:
    """Train PECOS on the training part and rank the labels of the others.

    Args:
        parts: The data.
        settings: Its settings.
        seed: The seed of the clusters.
        python: The Python that has libpecos.

    Returns:
        The record, the rankings of the report part, and that part.
    """
    train, select, report = (
        EncodedDocuments(part.tokens.cut(settings.max_tokens), part.labels)
        for part in (parts.train, parts.select, parts.report)
    )
    ignored = (parts.tokenizer.padding_id, parts.tokenizer.unknown_id)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        started = time.perf_counter()
        bag = BagOfWords.fit(train.tokens, parts.tokenizer.size, ignored)
        features = bag.rows(train.tokens)
        fitting_seconds = time.perf_counter() - started
        _write_training(folder, features, label_matrix(train.labels, len(parts.labels)))
        sparse.save_npz(folder / "features-select.npz", bag.rows(select.tokens))
        report_seconds = _write_features(folder / "features-report.npz", bag, report.tokens)
        told = json.dumps({"seed": seed, **settings.model_dump()})
        (folder / "settings.json").write_text(told, encoding="utf-8")
        about = _run_script(folder, python)
        chosen, ranked = (
            rankings_of(sparse.load_npz(folder / f"predicted-{part}.npz")) for part in ("select", "report")
        )
    started = time.perf_counter()  # as for every system, tuning on held-out documents counts as training
    threshold = best_threshold(chosen.scores, chosen.labels, list(select.labels))
    shared = (parts.labels.counts, len(train), threshold)
    selected_on = label_metrics(chosen.labels, chosen.scores, list(select.labels), *shared)
    fitting_seconds += time.perf_counter() - started
    training = fitting_seconds + about["training seconds"] + about["select seconds"]
    ranking = report_seconds + about["report seconds"]
    peak = about["peak bytes"]
    record = RunRecord(
        figures=label_metrics(ranked.labels, ranked.scores, list(report.labels), *shared),
        selected_on=selected_on,
        epochs=[],
        training_seconds=round(training, 1),
        milliseconds_per_document=round(1000 * ranking / len(report), 3),
        parameters=None,
        documents_by_iterations=None,
        model_mib=round(about["model bytes"] / 2**20, 2),
        **({} if peak is None else {"process_memory_gib": round(peak / 2**30, 2)}),
        config=settings.model_dump(),
        data=parts.fingerprint(),
    )
    return record, ranked, report


def _write_training(folder: Path, features: sparse.csr_matrix, labels: sparse.csr_matrix) -> None:
    """Write the training matrices, without documents that have no known word or no label."""
    kept = (np.diff(features.indptr) > 0) & (np.diff(labels.indptr) > 0)
    sparse.save_npz(folder / "features-train.npz", features[kept])
    sparse.save_npz(folder / "labels-train.npz", labels[kept])


def _write_features(path: Path, bag: BagOfWords, tokens: Ragged) -> float:
    """Write features and return the seconds of computing them, without the writing."""
    started = time.perf_counter()
    features = bag.rows(tokens)
    seconds = time.perf_counter() - started
    sparse.save_npz(path, features)
    return seconds


def _run_script(folder: Path, python: str) -> dict[str, Any]:
    # Python searches a script's folder for modules first, and ours has this file, named like the library.
    script = shutil.copy(_SCRIPT, folder)
    shutil.copy(processes.__file__, folder)
    command = [python, str(script), str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=processes.child_environment(),
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise NlpCapsuleError(f"PECOS ended with exit code {done.returncode}: {last}")
    about: dict[str, Any] = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return about
