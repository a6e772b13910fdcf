"""How well and how fast `learn` adds labels, measured against training from scratch on the same documents.

200 labels are held back. A model is trained on the documents that have none of them; `learn` then adds the
labels with five documents each. The rival is trained from scratch on both sets of documents. Both rank all
labels of the report part.
"""

from __future__ import annotations

import hashlib
import json
import shutil
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
from nlpcapsule.errors import DataError, ModelFolderError
from nlpcapsule.evaluation.bootstrap import bootstrap_interval
from nlpcapsule.learning.examples import Example
from nlpcapsule.learning.learn import learn
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.provenance import hardware
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.strict_json import read_json
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


@dataclass(frozen=True)
class Trained:
    """A model on disk, and how long its training took.

    Attributes:
        folder: The model folder.
        seconds: Seconds of its training, without reading the data.
    """

    folder: Path
    seconds: float


@dataclass(frozen=True)
class LearnBenchmark:
    """The two trainings and what is compared.

    Attributes:
        name: The data set.
        held: Its documents.
        select: Held-out documents with all their labels.
        config: The settings of both trainings.
        models: Folder of the models; those that are there are used again.
    """

    name: str
    held: HeldBack
    select: list[Document]
    config: Config
    models: Path

    @classmethod
    def read(
        cls,
        name: str,
        data: Path,
        models: Path,
        count: int,
        first: int | None = None,
        settings: Sequence[str] = (),
        preset: str | None = None,
    ) -> LearnBenchmark:
        """Read a data set and hold labels back.

        Args:
            name: The data set.
            data: The folder of real data.
            models: As the attribute.
            count: Labels to hold back.
            first: Training documents at most; None takes all.
            settings: Settings of both trainings, as "key=value".
            preset: Their preset.
        """
        config = Config.build("labels", None, None, settings, {}, preset)
        train, select, report = READERS[name](data)
        held = hold_back(train[:first], select, report, count)
        return cls(name, held, list(select), config, models)

    def trained(self, which: str) -> Trained:
        """Return a model, which is trained unless it is there: "before" learning, or from "scratch".

        Raises:
            ModelFolderError: If the one that is there was trained differently.
        """
        if which == "before":
            return self._trained(which, self.held.old, self.held.select)
        # Held-out documents keep the new labels here: training from scratch may use all that it would have.
        return self._trained(which, [*self.held.old, *self.held.new], self.select)

    def _trained(self, which: str, train: list[Document], dev: list[Document]) -> Trained:
        folder, note = self.models / which, self.models / f"{which}.json"
        begun = {"key": self._key(train, dev), "hardware": hardware()}
        if note.exists():
            found = read_json(note)
            if {key: found[key] for key in begun} != begun:
                raise ModelFolderError(
                    f"{folder} was trained on other data, with other settings or on other hardware: name "
                    "another folder with --models"
                )
            return Trained(folder, found["seconds"])
        started = time.perf_counter()
        prepared = prepare_labels(train, dev, self.config)
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        with TrainingProgress() as progress:
            progress.say(f"training the model {which!r} on {len(train):,} documents")
            fit_labels(prepared, self.config, RunFolder(folder), progress)
        seconds = time.perf_counter() - started
        write_text(note, json.dumps({**begun, "seconds": seconds}) + "\n")
        return Trained(folder, seconds)

    def _key(self, train: list[Document], dev: list[Document]) -> str:
        """Return a hash of all that a training depends on."""
        rows = [[row.text, row.labels] for part in (train, dev) for row in part]
        whole = json.dumps([len(train), rows, self.config.model_dump(mode="json")])
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    @property
    def fingerprint(self) -> str:
        """The data set and a hash of its documents, held-back labels and settings."""
        return f"{self.name} {self._key([*self.held.old, *self.held.new], self.held.report)}"

    def learned(self, model: Path, place: Path) -> tuple[LabelModel, dict[str, float]]:
        """Return the model that has learned the new labels, and the seconds of each step; saves it."""
        times = [time.perf_counter()]
        loaded = _load(model)
        times.append(time.perf_counter())
        examples = [Example(row.text, row.labels, (), row.id) for row in self.held.new]
        with TrainingProgress() as progress:
            learned = learn(loaded, examples, progress).model
        times.append(time.perf_counter())
        save_model(learned, place)
        times.append(time.perf_counter())
        steps = zip(("load", "learn", "save"), np.diff(times).tolist(), strict=True)
        return learned, dict(steps)

    def measure(self) -> dict[str, Any]:
        """Train what is missing, learn, and return the figures."""
        before, scratch = self.trained("before"), self.trained("scratch")
        with TemporaryDirectory(dir=self.models) as place:
            model, steps = self.learned(before.folder, Path(place) / "learned")
        figures = {"learned": _figures(model, self.held)}
        for system, trained in {"before": before, "scratch": scratch}.items():
            figures[system] = _figures(_load(trained.folder), self.held)
        learn_seconds = sum(steps.values())
        held = self.held
        return {
            "held_back_labels": len(held.labels),
            "report_positives": sum(len(held.labels.intersection(row.labels)) for row in held.report),
            "documents": {"old": len(held.old), "new": len(held.new), "report": len(held.report)},
            "settings": self.config.model_dump(mode="json"),
            "seconds": {"learn": learn_seconds, "scratch": scratch.seconds, "learn by step": steps},
            "figures": figures,
            "recall_kept": figures["learned"]["new recall@5"] / max(figures["scratch"]["new recall@5"], 1e-9),
            "time_share": learn_seconds / scratch.seconds,
            "old_P@1_lost": figures["before"]["old P@1"] - figures["learned"]["old P@1"],
        }


def _load(folder: Path) -> LabelModel:
    model = load_model(folder)
    assert isinstance(model, LabelModel)
    return model


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
