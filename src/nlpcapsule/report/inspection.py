"""Report the routing of a trained model: printed tables, plots, and files with the numbers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nlpcapsule.atomic_files import atomic_text, write_text
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.report import plots
from nlpcapsule.report.iteration_effects import (
    IterationEffects,
    changes_by_all_iterations,
    changes_by_iteration,
    effects_of_iterations,
)
from nlpcapsule.report.routing import RoutingInspection, encoded_for, inspect_encoded
from nlpcapsule.scoring.models import AnswerModel, LabelModel

_BAR = 30  # maximum width of a bar in the printed histogram, in characters


def inspect_model(
    model: LabelModel | AnswerModel, documents: Sequence[Document], folder: Path, document: int
) -> None:
    """Inspect a model's routing, print a summary, and write plots, inspection.json and agreement.jsonl.

    `document` is the index, from 0, of the one for the instance-level curves.
    """
    if not isinstance(model, LabelModel):
        raise NlpCapsuleError("inspect looks into the routing of label models; this model ranks answers")
    encoded = encoded_for(model, documents)
    found = inspect_encoded(model, encoded, document)
    effects = effects_of_iterations(model, encoded, found.iterations)
    names = model.labels.ids
    summary = _summary(found, effects, document, documents[document])
    lines: list[dict[str, Any]] = [
        {
            "document": number + 1,
            "id": row.id,
            "iterations": int(found.iterations[number]),
            "agreement": _finite_values(found.agreement[number]),
            "steps": document_steps(effects, number, names, found.agreement[number]),
        }
        for number, row in enumerate(documents)
    ]
    console = Console()
    print_summary(summary, console)
    title = f"Document {document + 1}" + (f" ({documents[document].id})" if documents[document].id else "")
    print_document(lines[document]["steps"], title, console)
    for name, svg in _plots(found, effects, names, document).items():
        if svg is None:
            (folder / name).unlink(missing_ok=True)  # remove an earlier inspection's plot
        else:
            write_text(folder / name, svg)
    write_text(folder / "inspection.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
    with atomic_text(folder / "agreement.jsonl") as file:
        file.writelines(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    console.print(f"plots and numbers are in {folder}", highlight=False, markup=False, soft_wrap=True)


def _summary(
    found: RoutingInspection, effects: IterationEffects, document: int, row: Document
) -> dict[str, Any]:
    """Return the numbers over all documents, for JSON."""
    numbers, counts = np.unique(found.iterations, return_counts=True)
    columns = [column[np.isfinite(column)] for column in found.agreement.T]  # of documents that took part
    return {
        "routing": found.routing,
        "most_iterations": found.most_iterations,
        "documents_by_iterations": dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True)),
        "mean_agreement": [
            {"iteration": number, "documents": len(scores), "agreement": float(scores.mean())}
            for number, scores in enumerate(columns, start=1)
            if len(scores)
        ],
        "loss_by_iterations": {str(number): loss for number, loss in found.loss_by_iterations.items()},
        "instance": {
            "document": document + 1,
            "id": row.id,
            "agreement": _finite_values(found.instance_agreement),
            "stop": found.instance_stop,
        },
        "changes": effects_summary(effects),
    }


def effects_summary(effects: IterationEffects) -> dict[str, Any]:
    """Return what iterations changed over all documents, for JSON."""
    steps = changes_by_iteration(effects)
    return {
        "first_labels": effects.labels.shape[2],
        "documents_with_truth": int(effects.has_truth.sum()),
        "by_iteration": {str(number): asdict(changes) for number, changes in steps.items()},
        "by_all_after_the_first": asdict(changes_by_all_iterations(effects)),
    }


def document_steps(
    effects: IterationEffects, number: int, names: Sequence[str], agreement: np.ndarray
) -> list[dict[str, Any]]:
    """Return one document's iterations for JSON: its agreement (T,), its first labels, and their changes."""
    steps = []
    for position in range(int(effects.iterations[number])):
        labels, scores = effects.labels[number, position], effects.scores[number, position]  # (K,)
        before = effects.labels[number, max(position - 1, 0)]
        true_labels = int(effects.is_true[number, position].sum())
        steps.append(
            {
                "iteration": position + 1,
                "agreement": float(agreement[position]),
                "labels": [
                    {"label": names[label], "score": round(float(score), 6)}
                    for label, score in zip(labels, scores, strict=True)
                ],
                "true_labels": true_labels if effects.has_truth[number] else None,
                "entered": [names[label] for label in labels[~np.isin(labels, before)]],
                "left": [names[label] for label in before[~np.isin(before, labels)]],
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


def print_summary(summary: dict[str, Any], console: Console) -> None:
    """Print the numbers over all documents as tables."""
    most, counts = summary["most_iterations"], summary["documents_by_iterations"]
    limit = f"{most} for every document" if summary["instance"]["stop"] is None else f"at most {most}"
    console.print(f"routing {summary['routing']}, iterations: {limit}", highlight=False)
    total = sum(counts.values())
    rows: Iterable[Sequence[object]] = (
        (number, f"{count:,}", f"{count / total:.1%}", "█" * max(1, round(_BAR * count / total)))
        for number, count in counts.items()
    )
    console.print(_table("Iterations per document", ("iterations", "documents", "share", ""), rows))
    rows = (
        (at["iteration"], f"{at['documents']:,}", f"{at['agreement']:.4f}")
        for at in summary["mean_agreement"]
    )
    title = "Agreement (NAS), mean over documents"
    console.print(_table(title, ("iteration", "documents", "mean NAS"), rows))
    losses = summary["loss_by_iterations"]
    if losses:
        rows = ((number, f"{loss:.4f}") for number, loss in losses.items())
        console.print(_table("Loss by fixed iterations", ("iterations", "loss per document"), rows))
    else:
        console.print("no document has a label that the model knows, so there is no loss to show")
    if summary["changes"]["by_iteration"]:
        print_changes(summary["changes"], console)


def print_changes(changes: dict[str, Any], console: Console) -> None:
    """Print what iterations changed, as `effects_summary` returns it, as a table."""
    counted = changes["by_iteration"] | {"from 2 on": changes["by_all_after_the_first"]}
    rows = ((name, *(f"{count:,}" for count in row.values())) for name, row in counted.items())
    head = ("iteration", "documents", "top label", "better", "worse", "first labels", "better", "worse")
    console.print(_table(f"What iterations changed (first {changes['first_labels']} labels)", head, rows))
    known = f"{changes['documents_with_truth']:,} documents"
    console.print(f"better, worse: by true labels, known for {known}", highlight=False)


def print_document(steps: Sequence[dict[str, Any]], title: str, console: Console) -> None:
    """Print one document's iterations, as `document_steps` returns them, as a table."""
    rows = (
        (
            step["iteration"],
            f"{step['agreement']:.4f}",
            ", ".join(f"{label['label']} {label['score']:.3f}" for label in step["labels"]),
            ", ".join(step["entered"]),
            ", ".join(step["left"]),
        )
        for step in steps
    )
    columns = ("iteration", "NAS", "first labels, had it stopped there", "entered", "left")
    console.print(_table(title, columns, rows, text_from=2))


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], text_from: int | None = None
) -> Table:
    """Return a table of numbers; columns from `text_from` on are text."""
    table = Table(title=escape(title), title_justify="left")
    for position, column in enumerate(columns):
        is_text = not column or (text_from is not None and position >= text_from)
        no_wrap = column in ("iteration", "documents")
        table.add_column(column, justify="left" if is_text else "right", overflow="fold", no_wrap=no_wrap)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    return table


def _plots(
    found: RoutingInspection, effects: IterationEffects, names: Sequence[str], document: int
) -> dict[str, str | None]:
    """Return file name → plot; None if there is nothing to draw."""
    changes = changes_by_iteration(effects)
    losses = found.loss_by_iterations
    return {
        "iterations.svg": plots.iterations_histogram(found.iterations),
        "agreement.svg": plots.instance_curve(
            found.instance_agreement, found.instance_stop, found.most_iterations
        ),
        "loss.svg": plots.system_curve(losses) if losses else None,
        "changes.svg": plots.changes_bars(changes) if changes else None,
        "probabilities.svg": plots.probability_lines(document_probabilities(effects, document, names)),
    }


def _finite_values(scores: np.ndarray) -> list[float]:
    """Return the scores for JSON, which has no NaN: values after a document stopped are left out."""
    return [float(score) for score in scores[np.isfinite(scores)]]
