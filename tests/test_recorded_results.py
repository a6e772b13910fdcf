"""Results stay what they were: figures and ranked lists recorded before a redesign.

`python tests/test_recorded_results.py` records them again, after a change that is meant to change results.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nlpcapsule import AnswerRanker, CapsuleClassifier
from nlpcapsule.sample import load_documents, load_questions

load_documents, load_questions = cache(load_documents), cache(load_questions)

RECORD = Path(__file__).parent / "recorded" / "results.json"
_SHOWN = 20  # documents, and questions, whose ranked lists are recorded

_ENCODER = {"max_tokens": 60, "embedding_size": 24, "filters": 16, "condensed": 12}
_LABEL_QUERY = {**_ENCODER, "capsule_size": 24, "document_size": 24}
_PAPER = {**_ENCODER, "capsule_size": 8, "inference.candidates": 60}
_SLOW = {"learning_rate": 1e-4}  # larger steps make much of what processors round differently
LABELS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("hybrid", {**_LABEL_QUERY, "learning_rate": 0.01}),
    "label-query, dot": ("label-query", {**_LABEL_QUERY, "routing": "dot"}),
    "label-query, kde": ("label-query", {**_LABEL_QUERY, "routing": "kde"}),
    "label-query, adaptive-kde": ("label-query", {**_LABEL_QUERY, "routing": "adaptive-kde"}),
    "paper, dynamic": ("paper", {**_PAPER, "routing": "dynamic"}),
    "paper, em": ("paper", {**_PAPER, "routing": "em", **_SLOW}),
    "paper, kde": ("paper", {**_PAPER, "routing": "kde"}),
    "paper, kde-em": ("paper", {**_PAPER, "routing": "kde-em"}),
    "paper, adaptive-kde": ("paper", _PAPER),
    "paper, literal": ("paper", {**_PAPER, "routing": "adaptive-kde-literal"}),
    "paper, class": ("paper", {**_PAPER, "votes": "class", **_SLOW}),
    "official": ("official", _PAPER),
    "kim-cnn": ("kim-cnn", {"max_tokens": 60, "embedding_size": 24, "filters": 16}),
    "one-vs-rest": ("one-vs-rest", {"max_tokens": 60}),
}
_ANSWERS_SMALL = {"max_tokens": 32, "embedding_size": 24, "filters": 16, "condensed": 8, "capsule_size": 16}
ANSWERS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("label-query", _ANSWERS_SMALL),
    "paper": ("paper", _ANSWERS_SMALL),
}


def label_results(name: str) -> dict[str, Any]:
    """Two epochs on part of the sample's letters: figures, and the first ranked lists."""
    model, settings = LABELS[name]
    train, dev, test = load_documents("train")[:400], load_documents("dev"), load_documents("test-seen")[:100]
    classifier = CapsuleClassifier(model, epochs=2, settings=settings)
    classifier.fit(
        [row.text for row in train],
        [row.labels for row in train],
        [row.text for row in dev],
        [row.labels for row in dev],
    )
    figures = classifier.evaluate([row.text for row in test], [row.labels for row in test])
    ranked = classifier.rank([row.text for row in test[:_SHOWN]])
    return {
        "P@1": figures["P@1"],
        "nDCG@5": figures["nDCG@5"],
        "labels": [[row.label for row in rows] for rows in ranked],
        "scores": [[row.score for row in rows] for rows in ranked],
    }


def answer_results(name: str) -> dict[str, Any]:
    """Two epochs on part of the sample's questions: the order and the scores of their candidates."""
    model, settings = ANSWERS[name]
    train, test = load_questions("train")[:80], load_questions("test")[:_SHOWN]
    ranker = AnswerRanker(model, epochs=2, settings=settings)
    ranker.fit(
        [row.text for row in train],
        [[candidate.text for candidate in row.candidates] for row in train],
        [[candidate.label for candidate in row.candidates] for row in train],
    )
    ranked = ranker.rank(
        [row.text for row in test], [[candidate.text for candidate in row.candidates] for row in test]
    )
    return {
        "labels": [[row.answer for row in rows] for rows in ranked],
        "scores": [[row.score for row in rows] for rows in ranked],
    }


def machine() -> str:
    """Other processors and other versions of torch round differently, and training makes more of it."""
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


def recorded(kind: str, name: str) -> dict[str, Any]:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if record["machine"] != machine():
        pytest.skip(f"recorded with {record['machine']}, this is {machine()}")
    return record[kind][name]


def check(found: dict[str, Any], expected: dict[str, Any], tolerance: float = 3e-5) -> None:
    """Compare figures and scores, and rankings where scores differ by more than rounding does."""
    for row, wanted in zip(found["scores"], expected["scores"], strict=True):
        np.testing.assert_allclose(row, wanted, atol=tolerance, rtol=0)
    compared, places = 0, 0
    for row, wanted, scores in zip(found["labels"], expected["labels"], expected["scores"], strict=True):
        assert len(row) == len(wanted)
        clear = clear_places(scores, 2 * tolerance)
        assert [row[place] for place in clear] == [wanted[place] for place in clear]
        compared, places = compared + len(clear), places + len(row)
    assert compared >= places / 5  # or little is compared
    for figure in ("P@1", "nDCG@5"):
        assert found.get(figure) == pytest.approx(expected.get(figure), abs=0.005)  # close labels may swap


def clear_places(scores: list[float], least: float) -> list[int]:
    """Return the places of a ranking whose scores differ from those before and after by at least this much.

    The last place of a cut ranking has no next score: the first one left out may be as good.
    """
    gaps = -np.diff([np.inf, *scores])
    return [place for place in range(len(scores) - 1) if min(gaps[place], gaps[place + 1]) >= least]


def test_places_of_close_scores_are_not_compared() -> None:
    assert clear_places([0.9, 0.5, 0.49999, 0.3, 0.2], 1e-4) == [0, 3]


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_ranked_as_recorded(name: str) -> None:
    check(label_results(name), recorded("labels", name))


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_ranked_as_recorded(name: str) -> None:
    check(answer_results(name), recorded("answers", name))


if __name__ == "__main__":
    torch.set_num_threads(1)
    RECORD.parent.mkdir(exist_ok=True)
    results = {
        "machine": machine(),
        "labels": {name: label_results(name) for name in LABELS},
        "answers": {name: answer_results(name) for name in ANSWERS},
    }
    RECORD.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
