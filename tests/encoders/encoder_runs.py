"""Documents whose labels hang on one word, and label-query models of every encoder fitted on them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from planted_texts import FILLERS, SIGNS

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

SIZES = {
    "max_tokens": 40,
    "capsule_size": 8,
    "condensed": 4,
    "document_size": 8,
    "batch_size": 8,
    "epochs": 1,
    "min_count": 1,
}
SIZES_OF: dict[str, dict[str, int]] = {
    "convolution": {"embedding_size": 8, "filters": 8},
    "bilstm": {"embedding_size": 8, "state_size": 6},
    "transformer": {"window": 12},
}
ENCODERS = ["convolution", "bilstm", "transformer"]


def encoder_config(encoder: str, folder: Path | None = None, task: str = "labels", **settings: Any) -> Config:
    """A small label-query; "transformer" stands for the one in `folder`."""
    named = str(folder) if encoder == "transformer" else encoder
    sizes = {**SIZES, **SIZES_OF.get(encoder, {"embedding_size": 8})}
    model = "hybrid" if "lexical" in settings else "label-query"
    return Config.build(task, model, overrides={**sizes, "encoder": named, **settings})


def planted_documents(count: int, words: int, first: int = 0, seed: int = 1) -> list[Document]:
    """Fillers, and from place `first` on one word that decides the label."""
    draw = random.Random(seed)
    documents = []
    for _ in range(count):
        kind, sign = draw.choice(list(SIGNS.items()))
        text = draw.choices(FILLERS, k=words)
        text[draw.randrange(first, words)] = sign
        documents.append(Document(" ".join(text), (kind,)))
    return documents


def fitted_labels(
    folder: Path, config: Config, documents: list[Document], resume: bool = False
) -> LabelModel:
    """The model, trained by the doors everyone uses."""
    data = prepare_labels(documents, None, config)
    return fit_labels(data, config, RunFolder(folder, resume), TrainingProgress(quiet=True))


def right_at_first(model: LabelModel, documents: list[Document]) -> float:
    """The part of the documents whose best label is theirs."""
    ranked = model.rank([document.text for document in documents], top_k=1)
    hits = [best[0].label in document.labels for best, document in zip(ranked, documents, strict=True)]
    return sum(hits) / len(hits)
