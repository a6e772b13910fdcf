"""Folders to compare on, and the command as a user gives it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nlpcapsule.cli.app import main

WORDS = {"fish": "fishery", "milk": "dairy", "lamp": "lighting", "road": "traffic"}


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
