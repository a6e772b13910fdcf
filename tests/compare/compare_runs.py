"""Folders to compare on, a stand-in for libpecos, and the command as a user gives it."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nlpcapsule.cli.app import main
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.run_record import RunRecord

WORDS = {"fish": "fishery", "milk": "dairy", "lamp": "lighting", "road": "traffic"}

# What our script uses of libpecos: labels are scored by the training documents that share words.
STAND_IN = {
    "pecos/__init__.py": "",
    "pecos/xmc/__init__.py": """
class LabelEmbeddingFactory:
    @staticmethod
    def create(labels, features, method):
        assert method == "pifa"
        return labels.T @ features

class Indexer:
    @staticmethod
    def gen(embeddings, indexer_type, nr_splits, max_leaf_size, seed):
        return (nr_splits, max_leaf_size, seed)
""",
    "pecos/xmc/xlinear/__init__.py": "",
    "pecos/xmc/xlinear/model.py": """
import json
from pathlib import Path
from typing import Any

class XLinearModel:
    @classmethod
    def train(cls, features, labels, C, Cp, Cn, threshold):
        model = cls()
        model.told = [*C, Cp, Cn, threshold]
        model.weights = features.T @ labels
        return model

    def predict(self, features, only_topk, beam_size):
        if beam_size == 99:
            raise RuntimeError("the beam is too wide")
        scores = (features @ self.weights).tocsr()
        scores.data /= max(scores.data.max(), 1)
        return scores

    def save(self, folder):
        (Path(folder) / "model.json").write_text(json.dumps(self.told))
""",
}


def made_up_record(cell: Cell, **fields: Any) -> RunRecord:
    """The record of a run that never was."""
    usual: dict[str, Any] = {
        "figures": {"P@1": 0.5},
        "selected_on": {"P@1": 0.4},
        "epochs": [{"epoch": 1, "loss": 2.0}],
        "training_seconds": 1.5,
        "config": {},
        "data": "fingerprint",
        "hardware": "a toaster",
        "commit": "abc123",
    }
    return RunRecord(cell=cell, **{**usual, **fields})


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run_compare(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> Finished:
    """Calls `nlpcapsule compare` in this process."""
    monkeypatch.setattr(sys, "argv", ["nlpcapsule", "compare", *map(str, arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return Finished(int(ended.value.code or 0), said.out, said.err)


def write_jsonl(path: Path, rows: Iterable[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def letters(count: int, seed: int = 0) -> list[dict]:
    """Documents whose label is told by one word: a linear model gets all of them right."""
    words = list(WORDS)
    return [
        {
            "text": f"the {words[n % 4]} is here {words[n % 4]} again {seed} {n % 3}",
            "labels": [WORDS[words[n % 4]]],
        }
        for n in range(count)
    ]


def questions(count: int) -> list[dict]:
    """The right answer repeats the question's words."""
    words = list(WORDS)
    return [
        {
            "question": f"where is the {words[n % 4]}",
            "candidates": [
                {"text": f"no {words[(n + 1) % 4]} at all", "label": 0},
                {"text": f"the {words[n % 4]} is here", "label": 1},
            ],
        }
        for n in range(count)
    ]


def write_letters(folder: Path) -> Path:
    for part, count in (("train", 48), ("dev", 12), ("test", 16)):
        write_jsonl(folder / f"{part}.jsonl", letters(count, seed=count))
    return folder


def stand_in_python(folder: Path) -> Path:
    """A Python that finds the stand-in for libpecos."""
    for name, code in STAND_IN.items():
        path = folder / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder / "packages"}" exec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return python
