"""A small hybrid on made-up texts, with one label held back to be learned.

Every topic has words of its own. A text has a few words of each of its one or two topics, and words of any
topic as noise, so that those of the label that is held back are known words.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

TOPICS = ["bridge", "cheese", "debt", "fish", "glass", "honey", "iron", "jute", "kelp", "lamp"]
HELD_BACK = "lamp"
SIZES = {
    "max_tokens": 40,
    "min_count": 1,
    "embedding_size": 32,
    "filters": 32,
    "capsule_size": 32,
    "condensed": 4,
    "document_size": 32,
    "epochs": 12,
    "batch_size": 16,
    "lexical": "one-vs-rest",
}


def texts(seed: int, count: int, topics: list[str]) -> list[Document]:
    """Made-up texts on one or two of the topics."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        labels = generator.choice(topics, size=generator.integers(1, 3), replace=False).tolist()
        words = [f"{label}{generator.integers(6)}" for label in labels for _ in range(5)]
        words += [f"{generator.choice(TOPICS)}{generator.integers(6)}" for _ in range(3)]
        found.append(Document(" ".join(generator.permutation(words)), tuple(labels), f"{seed}-{number}"))
    return found


def old_documents() -> list[Document]:
    """Texts without the label that is held back."""
    return texts(1, 240, TOPICS[:-1])


def new_documents(count: int = 5) -> list[Document]:
    """Texts with it."""
    return [text for text in texts(2, 200, TOPICS) if HELD_BACK in text.labels][:count]


def later_documents() -> list[Document]:
    """Texts on all topics that no model has seen."""
    return texts(3, 120, TOPICS)


def train_small_hybrid(folder: Path, **settings: object) -> LabelModel:
    config = Config.build("labels", "hybrid", overrides={**SIZES, **settings})
    data = prepare_labels(old_documents(), None, config)
    return fit_labels(data, config, RunFolder(folder), TrainingProgress(quiet=True))
