"""Defaults of rankers with a pretrained transformer."""

from __future__ import annotations

from collections.abc import Mapping

from nlpcapsule.registry import Sections

# A pretrained transformer needs small steps; special tokens count as tokens.
PRETRAINED_ANSWER_DEFAULTS: Mapping[str, Sections] = {
    "answers": {
        "text": {"max_tokens": 128},
        "training": {"loss": "pointwise", "epochs": 3, "batch_size": 8, "learning_rate": 3e-5},
        "inference": {"batch_size": 8},
    }
}
