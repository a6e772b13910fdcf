"""A data set of a few letters and a plan of three small systems, one of which cannot be trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.dataset.encoded import encode_documents
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.sample import load_documents
from nlpcapsule.training.prepared_labels import prepare_labels

PLAN = """
[[systems]]
name = "small"
model = "kim-cnn"
settings = { "embedding_size" = 8, "filters" = 4, "training.epochs" = 2, "max_tokens" = 20 }

[[systems]]
name = "capsules"
model = "label-query"
settings = { "filters" = 4, "capsule_size" = 4, "condensed" = 3, "document_size" = 4, "epochs" = 1 }

[[systems]]
name = "broken"
model = "kim-cnn"
settings = { "colour" = "red" }
"""


def tiny_parts(vectors: bool = True) -> EncodedParts:
    config = Config.build(overrides={"max_tokens": 30})
    data = prepare_labels(load_documents("train")[:60], load_documents("dev")[:20], config)
    report = encode_documents(load_documents("test-seen")[:24], data.tokenizer, data.labels, 30)
    table = np.random.default_rng(0).normal(size=(data.tokenizer.size, 8)).astype(np.float32)
    return EncodedParts(
        "letters", data.tokenizer, data.labels, data.train, data.dev, report, table if vectors else None
    )


def write_plan(path: Path, text: str = PLAN) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
