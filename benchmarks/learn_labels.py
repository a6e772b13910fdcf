"""How well and how fast `learn` adds labels, measured against training from scratch on the same documents.

200 labels are held back. A model is trained on the documents that have none of them; `learn` then adds the
labels with five documents each. The rival is trained from scratch on both sets of documents. Both rank all
labels of the report part.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.label_data import READERS
from nlpcapsule.atomic_files import write_text
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.bootstrap import bootstrap_interval
from nlpcapsule.learning.examples import Example
from nlpcapsule.learning.learn import learn
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

EXAMPLES = 5  # documents per held-back label
_MOST = 12  # training documents of a label that may be held back
_SEED = 2019


@dataclass(frozen=True)
class HeldBack:
    """A split into what is trained at first and what is learned later.

    Attributes:
        labels: The labels that are held back.
        old: Training documents without any of them.
        new: Documents with five of each.
        select: Held-out documents, without held-back labels.
        report: Documents to report on.
    """

    labels: frozenset[str]
    old: list[Document]
    new: list[Document]
    select: list[Document]
    report: list[Document]


def hold_back(
    train: Sequence[Document], select: Sequence[Document], report: Sequence[Document], count: int
) -> HeldBack:
    """Choose labels at random among those with 5 to 12 training documents and one report document at least.

    Other documents with a held-back label are left out of every training.
    """
    seen = Counter(label for document in train for label in document.labels)
    reported = {label for document in report for label in document.labels}
    fit = sorted(label for label in reported if EXAMPLES <= seen[label] <= _MOST)
    if len(fit) < count:
        raise DataError(f"only {len(fit)} labels can be held back, not {count}")
    labels = frozenset(np.random.default_rng(_SEED).choice(fit, size=count, replace=False).tolist())
    left = dict.fromkeys(labels, EXAMPLES)
    old, new = [], []
    for document in train:
        held = labels.intersection(document.labels)
        wanted = {label for label in held if left[label]}
        for label in wanted:
            left[label] -= 1
        if not held:
            old.append(document)
        elif wanted:
            new.append(_without(document, held - wanted))
    return HeldBack(labels, old, new, [_without(row, labels) for row in select], list(report))


def measure(
    name: str,
    data: Path,
    output: Path,
    count: int,
    first: int | None,
    settings: Sequence[str],
    preset: str | None,
) -> dict[str, Any]:
    """Train, learn, train from scratch, and write the figures.

    Args:
        name: The data set.
        data: The folder of real data.
        output: The file to write.
        count: Labels to hold back.
        first: Training documents at most; None takes all.
        settings: Settings of both trainings, as "key=value".
        preset: Their preset.
    """
    train, select, report = READERS[name](data)
    held = hold_back(train[:first], select, report, count)
    config = Config.build("labels", None, None, settings, {}, preset)
    with TemporaryDirectory() as place:
        before, _ = _train(held.old, held.select, config, Path(place) / "before")
        started = time.perf_counter()
        loaded = load_model(Path(place) / "before")
        assert isinstance(loaded, LabelModel)
        with TrainingProgress() as progress:
            learned = learn(loaded, [Example(row.text, row.labels, (), row.id) for row in held.new], progress)
        save_model(learned.model, Path(place) / "learned")
        learn_seconds = time.perf_counter() - started
        # Held-out documents keep the new labels here: training from scratch may use all that it would have.
        scratch, scratch_seconds = _train(
            [*held.old, *held.new], list(select), config, Path(place) / "scratch"
        )
    figures = {
        system: _figures(model, held)
        for system, model in {"before": before, "learned": learned.model, "scratch": scratch}.items()
    }
    record = {
        "data": name,
        "held_back_labels": count,
        "report_positives": sum(len(held.labels.intersection(row.labels)) for row in held.report),
        "documents": {"old": len(held.old), "new": len(held.new), "report": len(held.report)},
        "settings": config.model_dump(mode="json"),
        "seconds": {"learn": learn_seconds, "scratch": scratch_seconds},
        "figures": figures,
        "recall_kept": figures["learned"]["new recall@5"] / max(figures["scratch"]["new recall@5"], 1e-9),
        "time_share": learn_seconds / scratch_seconds,
        "old_P@1_lost": figures["before"]["old P@1"] - figures["learned"]["old P@1"],
    }
    write_text(output, json.dumps(record, indent=2) + "\n")
    return record


def _train(
    train: list[Document], dev: list[Document], config: Config, folder: Path
) -> tuple[LabelModel, float]:
    started = time.perf_counter()
    prepared = prepare_labels(train, dev, config)
    with TrainingProgress() as progress:
        model = fit_labels(prepared, config, RunFolder(folder), progress)
    return model, time.perf_counter() - started


def _figures(model: LabelModel, held: HeldBack) -> dict[str, Any]:
    """Return recall@5 of the held-back labels and P@1 of the others, with 95% intervals over documents."""
    ranked = model.rank([row.text for row in held.report], 50)
    found, wanted, right = [], [], []
    for document, rows in zip(held.report, ranked, strict=True):
        labels = [row.label for row in rows]
        own = held.labels.intersection(document.labels)
        found.append(len(own.intersection(labels[:5])))
        wanted.append(len(own))
        # The best of the old labels, so that a right new label in front of it is no mistake.
        best = next(label for label in labels if label not in held.labels)
        right.append(best in document.labels)
    recall = sum(found) / max(1, sum(wanted))
    return {
        "new recall@5": recall,
        "new recall@5 interval": _ratio_interval(np.array(found), np.array(wanted)),
        "old P@1": float(np.mean(right)),
        "old P@1 interval": list(bootstrap_interval(np.array(right, dtype=float))),
        "P@1": float(
            np.mean([rows[0].label in row.labels for row, rows in zip(held.report, ranked, strict=True)])
        ),
    }


def _ratio_interval(found: np.ndarray, wanted: np.ndarray, rounds: int = 1000) -> list[float]:
    """Return the 95% bootstrap interval of Σ found / Σ wanted over documents."""
    generator = np.random.default_rng(_SEED)
    rows = generator.integers(len(found), size=(rounds, len(found)))
    ratios = found[rows].sum(axis=1) / np.maximum(wanted[rows].sum(axis=1), 1)
    return np.quantile(ratios, [0.025, 0.975]).tolist()


def _without(document: Document, labels: frozenset[str] | set[str]) -> Document:
    return replace(document, labels=tuple(label for label in document.labels if label not in labels))
