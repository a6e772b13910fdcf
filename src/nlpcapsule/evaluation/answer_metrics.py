"""Metrics of ranked answers: MAP and MRR, with ties counted against the model."""

from collections.abc import Sequence

import numpy as np

from nlpcapsule.errors import DataError
from nlpcapsule.evaluation.bootstrap import bootstrap_interval
from nlpcapsule.evaluation.ranked import measure_each


def answer_metrics(
    scores: Sequence[np.ndarray], labels: Sequence[Sequence[int] | np.ndarray]
) -> dict[str, float]:
    """Return MAP and MRR over the questions that have at least one right answer (label 1).

    A wrong answer ranks above a right one of equal score. Data files often list right answers first, so
    keeping the input's order would reward a constant model.

    Scores and labels are (candidates,) per question. Besides "MAP" and "MRR", as fractions, there are the
    ends of their 95% bootstrap intervals ("MAP 95% low" and so on), "questions" (those scored) and "questions
    without a right answer" (those left out).

    Example:
        >>> answer_metrics([np.array([0.9, 0.9, 0.1])], [np.array([1, 0, 0])])["MRR"]
        0.5
    """
    figures: dict[str, float] = {}
    for name, values in zip(("MAP", "MRR"), per_question_metrics(scores, labels).values(), strict=True):
        figures[name] = float(values.mean())
        figures[f"{name} 95% low"], figures[f"{name} 95% high"] = bootstrap_interval(values)
    scored = len(values)
    return {**figures, "questions": scored, "questions without a right answer": len(labels) - scored}


def per_question_metrics(
    scores: Sequence[np.ndarray], labels: Sequence[Sequence[int] | np.ndarray]
) -> dict[str, np.ndarray]:
    """Return AP and RR of each question with a right answer, in order, for a paired comparison."""
    if len(scores) != len(labels):
        raise DataError(f"`scores` has {len(scores)} questions, but `labels` has {len(labels)}.")
    relevant, ranked = [], []
    for question, (given, right) in enumerate(zip(scores, labels, strict=True)):
        given, right = np.asarray(given), np.asarray(right)
        _check_question(given, right, question)
        if right.any():
            relevant.append(np.flatnonzero(right).tolist())
            ranked.append(np.lexsort((right, -given)).tolist())  # best first, ties against us
    if not relevant:
        raise DataError("no question has a right answer, so there is nothing to score")
    return measure_each(["AP", "RR"], relevant, ranked)


def _check_question(scores: np.ndarray, labels: np.ndarray, question: int) -> None:
    if scores.ndim != 1 or scores.shape != labels.shape:
        found = f"Got shapes {scores.shape} and {labels.shape} instead."
        raise DataError(f"Question {question} must have one score and one label per candidate. {found}")
    if not np.isin(labels, (0, 1)).all():
        raise DataError(f"`labels` must be 0 or 1. Question {question} has others.")
    if np.isnan(scores).any():
        raise DataError(f"`scores` must not contain NaN. Question {question} does.")
