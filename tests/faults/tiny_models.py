"""A tiny model of every system that can be saved, trained once per session when it is first asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from tiny_runs import SIZES, fit_documents, fit_questions, some_documents, tiny_config
from tiny_transformer import write_transformer

from nlpcapsule.config import Config
from nlpcapsule.export.export_model import export_model

SMALL = {"training.epochs": 1, "text.max_tokens": 20}
LEXICAL = ["one-vs-rest", "omikuji", "fast-xml", "pd-sparse", "fasttext"]
NETWORKS = [
    "label-query",
    "hybrid",
    "hybrid with trees",
    "hybrid with names",
    "hybrid on a transformer",
    "exported hybrid",
    "nominated",
    "official",
    "kim-cnn",
    "xml-cnn",
    "bow-cnn",
    "released-xml-cnn",
    "cap-zhao",
    "convolution-linear",
    "transformer-linear",
    "embedding-linear",
]
ANSWERS = [
    "label-query",
    "paper",
    "cap-zhao",
    "cnn-lr",
    "severyn-cnn",
    "cntn",
    "lstm",
    "mv-lstm",
    "ntn-lstm",
    "hd-lstm",
    "bm25",
    "bi-encoder",
    "cross-encoder",
]
ON_A_TRANSFORMER = (
    "hybrid on a transformer",
    "transformer-linear",
    "embedding-linear",
    "bi-encoder",
    "cross-encoder",
)
NEEDS = {"omikuji": "omikuji", "hybrid with trees": "omikuji", "fasttext": "fasttext"}
NEEDS |= {"exported hybrid": "onnxruntime"}
NEEDS |= dict.fromkeys(["fast-xml", "pd-sparse"], "numba") | dict.fromkeys(ON_A_TRANSFORMER, "transformers")


class TinyModels:
    """Model folders by kind ("lexical", "networks", "answers") and name.

    Args:
        folder: Where they are kept.
    """

    KINDS: ClassVar[dict[str, list[str]]] = {"lexical": LEXICAL, "networks": NETWORKS, "answers": ANSWERS}

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self, kind: str) -> list[str]:
        """The systems of a kind whose libraries are installed."""
        return [name for name in self.KINDS[kind] if name not in NEEDS or _is_installed(NEEDS[name])]

    def __call__(self, kind: str, name: str) -> Path:
        place = self.folder / kind / name.replace(" ", "-")
        if not (place / "manifest.json").exists():
            train: Callable[[Path, str], None] = {
                "lexical": _train_lexical,
                "networks": self._train_network,
                "answers": self._train_answers,
            }[kind]
            train(place, name)
        return place

    def transformer(self) -> dict[str, str]:
        place = self.folder / "transformer"
        if not place.exists():
            write_transformer(place)
        return {"encoder": str(place)}

    def _train_network(self, place: Path, name: str) -> None:
        if name in SIZES:
            config = tiny_config(model=name, **SMALL)
        elif name in ("hybrid", "exported hybrid"):
            config = tiny_config(**SMALL, lexical="one-vs-rest")
        elif name == "hybrid with trees":
            config = tiny_config(**SMALL, lexical="omikuji")
        elif name == "hybrid with names":
            labels = sorted({label for row in some_documents(64) for label in row.labels})
            names = place.parent / "names.json"
            names.parent.mkdir(parents=True, exist_ok=True)
            known = {label: label.replace("-", " ") for label in labels} | {
                "unheard-of": "a label by name alone"
            }
            names.write_text(json.dumps(known), encoding="utf-8")
            named = {"text.label_names": str(names), "lexical": "one-vs-rest"}
            config = tiny_config(**SMALL, **named)
        elif name == "hybrid on a transformer":
            sizes = {"capsule_size": 8, "condensed": 4, "document_size": 8, "lexical": "one-vs-rest"}
            config = Config.build(overrides={**SMALL, **sizes, **self.transformer()})
        elif name == "nominated":
            config = tiny_config(model="paper", **SMALL, **{"inference.candidates": 6})
        else:
            encoder = self.transformer() if name in ON_A_TRANSFORMER else {}
            config = Config.build("labels", name, overrides={**SMALL, **encoder})
        fit_documents(place, config)
        if name == "exported hybrid":
            export_model(place)

    def _train_answers(self, place: Path, name: str) -> None:
        if name in SIZES:
            config = tiny_config("answers", name, **SMALL)
        else:
            encoder = self.transformer() if name in ON_A_TRANSFORMER else {}
            config = Config.build("answers", name, overrides={**SMALL, **encoder})
        fit_questions(place, config)


def _train_lexical(place: Path, name: str) -> None:
    few = {"model.trees": 3} if name in ("fast-xml", "omikuji") else {}
    fit_documents(place, Config.build("labels", name, overrides={"text.max_tokens": 30, **few}))


def _is_installed(package: str) -> bool:
    try:
        pytest.importorskip(package)
    except pytest.skip.Exception:
        return False
    return True
