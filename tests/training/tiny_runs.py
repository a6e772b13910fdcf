"""Slices of the embedded sample and settings so small that a whole training takes a moment."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document, Question
from nlpcapsule.sample import load_documents, load_questions
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

_documents, _questions = cache(load_documents), cache(load_questions)

SHARED = {"max_tokens": 40, "embedding_size": 8, "filters": 8, "batch_size": 16, "epochs": 1}
CAPSULES = SHARED | {"capsule_size": 8, "condensed": 4}
SIZES: dict[str, dict[str, Any]] = {
    "label-query": CAPSULES | {"document_size": 8},
    "paper": CAPSULES | {"candidates": 0},
    "official": CAPSULES | {"candidates": 0},
    "kim-cnn": SHARED,
    "xml-cnn": SHARED | {"bottleneck": 8},
}


def tiny_config(task: str = "labels", model: str = "label-query", **settings: Any) -> Config:
    sizes = dict(SIZES[model])
    if task == "answers":
        sizes |= {"max_tokens": 20}
    if "lexical" in settings:  # the network is part of a hybrid
        settings, model = {"network": model, **settings}, "hybrid"
    return Config.build(task, model, overrides=sizes | settings)


def some_documents(count: int = 64, part: str = "train") -> list[Document]:
    return _documents(part)[:count]


def some_questions(count: int = 24, part: str = "train") -> list[Question]:
    return _questions(part)[:count]


def fit_documents(
    folder: Path,
    config: Config,
    *,
    train: int = 64,
    dev: int = 16,
    resume: bool = False,
    tensorboard: bool = False,
) -> LabelModel:
    """Trains on the first letters of the sample."""
    held_out = some_documents(dev, "dev") if dev else None
    data = prepare_labels(some_documents(train), held_out, config)
    return fit_labels(data, config, RunFolder(folder, resume, tensorboard), TrainingProgress(quiet=True))


def fit_questions(
    folder: Path, config: Config, *, train: int = 24, dev: int = 8, resume: bool = False
) -> AnswerModel:
    """Trains on the first questions of the sample."""
    held_out = some_questions(dev, "dev") if dev else None
    data = prepare_answers(some_questions(train), held_out, config)
    return fit_answers(data, config, RunFolder(folder, resume), TrainingProgress(quiet=True))


def write_documents(path: Path, documents: list[Document]) -> Path:
    rows = (json.dumps({"text": row.text, "labels": row.labels}) for row in documents)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
