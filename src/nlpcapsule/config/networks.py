"""The networks there are, for labels and for answers, and where their defaults differ."""

from __future__ import annotations

from typing import Any

from nlpcapsule.config.answer_baselines import ANSWER_BASELINES, AnswerBaselineSettings
from nlpcapsule.config.settings import (
    BowCNNSettings,
    CapZhaoSettings,
    KimCNNSettings,
    LabelQuerySettings,
    OfficialSettings,
    PaperSettings,
    ReleasedXMLCNNSettings,
    Settings,
    XMLCNNSettings,
)

ModelSettings = (
    LabelQuerySettings
    | PaperSettings
    | OfficialSettings
    | KimCNNSettings
    | XMLCNNSettings
    | BowCNNSettings
    | ReleasedXMLCNNSettings
    | CapZhaoSettings
    | AnswerBaselineSettings
)

LABEL_MODELS: dict[str, type[Settings]] = {
    "label-query": LabelQuerySettings,
    "paper": PaperSettings,
    "official": OfficialSettings,
    "kim-cnn": KimCNNSettings,
    "xml-cnn": XMLCNNSettings,
    "bow-cnn": BowCNNSettings,
    "released-xml-cnn": ReleasedXMLCNNSettings,
    "cap-zhao": CapZhaoSettings,
}

ANSWER_MODELS: dict[str, type[Settings]] = {
    "label-query": LabelQuerySettings,
    "paper": PaperSettings,
    **ANSWER_BASELINES,
}

MODELS = {**LABEL_MODELS, **ANSWER_MODELS}

_ANSWERS: dict[str, dict[str, Any]] = {
    "text": {"max_tokens": 64},
    "training": {"loss": "pointwise", "epochs": 10},
}

# Where a network wants other defaults than the sections give.
DEFAULTS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("labels", "paper"): {
        "training": {"negatives": "uniform", "weight_decay": 0.0},
        "inference": {"candidates": 200},
    },
    ("labels", "official"): {
        "training": {"negatives": "batch", "weight_decay": 0.0, "shuffle": False},
        "inference": {"candidates": 200},
    },
    ("labels", "cap-zhao"): {"training": {"weight_decay": 0.0}},
    **{("answers", name): _ANSWERS for name in ANSWER_BASELINES},
    ("answers", "label-query"): {
        **_ANSWERS,
        "model": {
            "windows": (1, 3),
            "condensed": 32,
            "filters": 128,
            "capsule_size": 128,
            "word_dropout": 0.2,
            "token_dropout": 0.3,
        },
    },
    ("answers", "paper"): {**_ANSWERS, "model": {"windows": (3, 4, 5), "condensed": 256}},
}
