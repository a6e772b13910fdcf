"""PECOS XR-Linear as a peer: trained by another Python on our tf-idf, through a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from nlpcapsule import processes
from nlpcapsule.compare.encoded_parts import EncodedParts
from nlpcapsule.compare.pecos_settings import INSTALL, PECOS_PYTHON, PecosSettings
from nlpcapsule.compare.run_record import Measurement
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ConfigError, NlpCapsuleError
from nlpcapsule.evaluation.label_metrics import label_metrics
from nlpcapsule.evaluation.ranked import NO_LABEL
from nlpcapsule.evaluation.thresholds import best_threshold
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.ranker import label_matrix
from nlpcapsule.scoring.documents import LabelRankings

_SCRIPT = Path(__file__).with_name("pecos_script.py")


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


def pecos_python(given: str | None) -> str | None:
    """Return the Python that runs PECOS: the given one, this one if it has libpecos, or None.

    Raises:
        ConfigError: If the given one cannot be run or has no libpecos.
    """
    if given is None:
        return sys.executable if find_spec("pecos") is not None else None
    path = shutil.which(given)
    if path is None:
        raise ConfigError(f"--pecos-python {given}: there is no such program; to make one: {INSTALL}")
    path = str(Path(path).absolute())
    command = [path, "-c", "import pecos.xmc"]
    with tempfile.TemporaryDirectory() as empty:  # older Pythons have no -P to exclude the working folder
        asked = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False)
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise ConfigError(f"--pecos-python {given} cannot import libpecos ({last}); to make one: {INSTALL}")
    return path


def needed_python(given: str | None) -> str:
    """Return the Python that runs PECOS: the given one, the environment's, or this one.

    Raises:
        ConfigError: If none of them has libpecos.
    """
    python = pecos_python(given or os.environ.get(PECOS_PYTHON))
    if python is None:
        raise ConfigError(f"PECOS needs libpecos in a Python of its own: {INSTALL}, or set {PECOS_PYTHON}")
    return python


def run_pecos(
    parts: EncodedParts, settings: PecosSettings, seed: int, python: str
) -> tuple[Measurement, LabelRankings, EncodedDocuments]:
    """Train PECOS on the training part and rank the labels of the others.

    Args:
        parts: The data.
        settings: Its settings.
        seed: The seed of the clusters.
        python: The Python that has libpecos.

    Returns:
        The measurement, the rankings of the report part, and that part.
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
    measurement = Measurement(
        figures=label_metrics(ranked.labels, ranked.scores, list(report.labels), *shared),
        selected_on=selected_on,
        epochs=[],
        training_seconds=round(training, 1),
        milliseconds_per_document=round(1000 * ranking / len(report), 3),
        model_mib=round(about["model bytes"] / 2**20, 2),
        process_memory_gib=None if peak is None else round(peak / 2**30, 2),
        config=settings.model_dump(),
        data=parts.fingerprint(),
    )
    return measurement, ranked, report


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
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NlpCapsuleError(f"PECOS ended with exit code {done.returncode}: {last}")
    about: dict[str, Any] = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return about
