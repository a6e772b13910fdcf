"""The demo's tables, as shown in the terminal and the README."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from nlpcapsule.evaluation.report import metrics_table

COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "micro-F1")
ANSWER_COLUMNS = ("MAP", "MAP 95% low", "MAP 95% high", "MRR", "questions")


def demo_tables(
    labels: Mapping[str, Mapping[str, Mapping[str, float]]], answers: Mapping[str, Mapping[str, float]]
) -> list[Table]:
    """Return one table per test part of the documents, and one of the questions.

    Args:
        labels: Test part → system → metrics.
        answers: System → metrics.
    """
    tables = [
        metrics_table(systems, COLUMNS, title=f"Labels, {part} (percent)") for part, systems in labels.items()
    ]
    return [*tables, metrics_table(answers, ANSWER_COLUMNS, title="Answers (percent)")]
