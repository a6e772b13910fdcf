"""Report what routing iterations changed: as numbers for files, and as printed tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nlpcapsule.diagnostics.iteration_effects import (
    TOP,
    Changes,
    IterationEffects,
    changes_by_all_iterations,
    changes_by_iteration,
    changes_by_last_iteration,
    entered_and_left,
)


def effects_summary(effects: IterationEffects) -> dict[str, Any]:
    """Return what iterations changed over all documents, for JSON."""
    steps = changes_by_iteration(effects)
    return {
        "first_labels": effects.labels.shape[2],
        "documents_with_truth": int(effects.has_truth.sum()),
        "by_iteration": {str(number): asdict(changes) for number, changes in steps.items()},
        "by_last_iteration": asdict(changes_by_last_iteration(effects)),
        "by_all_after_the_first": asdict(changes_by_all_iterations(effects)),
    }


def document_steps(
    effects: IterationEffects, number: int, names: Sequence[str], agreement: np.ndarray | None
) -> list[dict[str, Any]]:
    """Return one document's iterations for JSON: its agreement, its first labels, and their changes.

    Args:
        effects: What iterations changed.
        number: Index of the document, from 0.
        names: Label names by id.
        agreement: (T,) its agreement by iteration.
    """
    steps = []
    for position in range(int(effects.iterations[number])):
        labels, scores = effects.labels[number, position], effects.scores[number, position]  # (K,)
        before = effects.labels[number, position - 1] if position else labels
        entered, left = entered_and_left(before, labels)
        steps.append(
            {
                "iteration": position + 1,
                "agreement": None if agreement is None else float(agreement[position]),
                "labels": [
                    {"label": names[label], "score": round(float(score), 6)}
                    for label, score in zip(labels, scores, strict=True)
                ],
                "true_labels": int(effects.is_true[number, position].sum())
                if effects.has_truth[number]
                else None,
                "entered": [names[label] for label in entered],
                "left": [names[label] for label in left],
            }
        )
    return steps


def document_probabilities(
    effects: IterationEffects, number: int, names: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return label → (T,) probability after each iteration of a document, NaN if not among the first."""
    taken = int(effects.iterations[number])
    labels, scores = effects.labels[number, :taken], effects.scores[number, :taken]  # (T, K)
    in_order = dict.fromkeys(labels[::-1].reshape(-1).tolist())  # the final ranking first
    there = {label: labels == label for label in in_order}  # (T, K), one at most in a row
    return {
        names[label]: np.where(at.any(axis=1), (scores * at).sum(axis=1), np.nan)
        for label, at in there.items()
    }


def print_effects(effects: IterationEffects, console: Console) -> None:
    """Print a table of what iterations changed, over all documents."""
    table = Table(
        title=f"What iterations changed (first {effects.labels.shape[2]} labels)", title_justify="left"
    )
    counted = ("better", "worse")
    for column in ("iteration", "documents", "top label", *counted, "first labels", *counted):
        table.add_column(column, justify="right", no_wrap=column in ("iteration", "documents"))
    for number, changes in changes_by_iteration(effects).items():
        table.add_row(str(number), *_cells(changes))
    table.add_section()
    table.add_row("the last", *_cells(changes_by_last_iteration(effects)))
    table.add_row("from 2 on", *_cells(changes_by_all_iterations(effects)))
    console.print(table)
    console.print(
        f"better, worse: by true labels, known for {int(effects.has_truth.sum()):,} documents",
        highlight=False,
    )


def print_document(steps: Sequence[dict[str, Any]], title: str, console: Console) -> None:
    """Print one document's iterations as a table.

    Args:
        steps: As `document_steps` returns them.
        title: Title of the table.
        console: Where to print.
    """
    table = Table(title=escape(title), title_justify="left")
    for column in ("iteration", "NAS", f"first {TOP} labels, had it stopped there", "entered", "left"):
        table.add_column(
            column, justify="right" if column in ("iteration", "NAS") else "left", overflow="fold"
        )
    for step in steps:
        agreement = "" if step["agreement"] is None else f"{step['agreement']:.4f}"
        labels = ", ".join(f"{label['label']} {label['score']:.3f}" for label in step["labels"])
        table.add_row(
            str(step["iteration"]),
            agreement,
            escape(labels),
            escape(", ".join(step["entered"])),
            escape(", ".join(step["left"])),
        )
    console.print(table)


def _cells(changes: Changes) -> list[str]:
    return [f"{count:,}" for count in asdict(changes).values()]
