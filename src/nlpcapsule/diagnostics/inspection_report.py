"""Report the routing of a trained model: printed tables, plots, and files with the numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from nlpcapsule.atomic_files import atomic_text, write_text
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.diagnostics.inspection import (
    RoutingInspection,
    effects_of_iterations,
    inspect_encoded,
    routed_settings,
)
from nlpcapsule.diagnostics.iteration_effects import IterationEffects, changes_by_iteration
from nlpcapsule.diagnostics.iteration_report import (
    document_probabilities,
    document_steps,
    effects_summary,
    print_document,
    print_effects,
)
from nlpcapsule.diagnostics.plots import (
    changes_bars,
    instance_curve,
    iterations_histogram,
    probability_lines,
    system_curve,
)
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.scoring.models import AnswerModel, LabelModel

_BAR = 30  # maximum width of a bar in the printed histogram, in characters


def inspect_model(
    model: LabelModel | AnswerModel, documents: Sequence[Document], folder: Path, document: int
) -> None:
    """Inspect a model's routing, print a summary, and write plots and numbers.

    Args:
        model: A label model whose network routes.
        documents: Documents with labels.
        folder: Folder for plots, inspection.json and agreement.jsonl.
        document: Index of the document for the instance-level curves, from 0.

    Raises:
        NlpCapsuleError: If the model ranks answers or does not route, or there is no such document.
    """
    if not isinstance(model, LabelModel):
        raise NlpCapsuleError("inspect looks into the routing of label models; this model ranks answers")
    routed_settings(model)  # before tokenizing
    encoded = encode_documents(documents, model.tokenizer, model.labels, model.config.text.max_tokens)
    found = inspect_encoded(model, encoded, document)
    assert found.iterations is not None  # all routing networks count them
    effects = effects_of_iterations(model, encoded, found.iterations)
    _show(found, effects, model.labels.names, document, documents[document])
    for name, svg in _plots(found, effects, model.labels.names, document).items():
        if svg is None:
            (folder / name).unlink(missing_ok=True)  # remove an earlier inspection's plot
        else:
            write_text(folder / name, svg)
    summary = _summary(found, document, documents[document]) | {"changes": effects_summary(effects)}
    write_text(folder / "inspection.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
    with atomic_text(folder / "agreement.jsonl") as file:
        for number, row in enumerate(documents):
            line = _document_line(found, number, row)
            line["steps"] = document_steps(effects, number, model.labels.names, _row(found.agreement, number))
            file.write(json.dumps(line, allow_nan=False) + "\n")
    Console().print(f"plots and numbers are in {folder}", highlight=False, markup=False, soft_wrap=True)


def _show(
    found: RoutingInspection, effects: IterationEffects, names: Sequence[str], document: int, row: Document
) -> None:
    console = Console()
    _print_summary(found, console)
    if effects.labels.shape[1] > 1:
        print_effects(effects, console)
    steps = document_steps(effects, document, names, _row(found.agreement, document))
    title = f"Document {document + 1}" + (f" ({row.id})" if row.id else "")
    print_document(steps, title, console)


def _plots(
    found: RoutingInspection, effects: IterationEffects, names: Sequence[str], document: int
) -> dict[str, str | None]:
    """Return file name → plot; None if there is nothing to draw."""
    changes = changes_by_iteration(effects)
    return {
        "iterations.svg": None if found.iterations is None else iterations_histogram(found.iterations),
        "agreement.svg": None
        if found.instance_agreement is None
        else instance_curve(found.instance_agreement, found.instance_stop, found.most_iterations),
        "loss.svg": system_curve(found.loss_by_iterations) if found.loss_by_iterations else None,
        "changes.svg": changes_bars(changes) if changes else None,
        "probabilities.svg": probability_lines(document_probabilities(effects, document, names)),
    }


def _row(agreement: np.ndarray | None, number: int) -> np.ndarray | None:
    return None if agreement is None else agreement[number]


def _mean_agreement(agreement: np.ndarray) -> list[tuple[int, int, float]]:
    """Return iteration, documents that took part in it, and their mean NAS."""
    columns = [(number, column[np.isfinite(column)]) for number, column in enumerate(agreement.T, start=1)]
    return [(number, len(scores), float(scores.mean())) for number, scores in columns if len(scores)]


def _summary(found: RoutingInspection, document: int, row: Document) -> dict[str, Any]:
    counts = {} if found.iterations is None else _counts(found.iterations)
    means = [] if found.agreement is None else _mean_agreement(found.agreement)
    return {
        "routing": found.routing,
        "most_iterations": found.most_iterations,
        "documents_by_iterations": {str(number): count for number, count in counts.items()},
        "mean_agreement": [
            {"iteration": number, "documents": count, "agreement": mean} for number, count, mean in means
        ],
        "loss_by_iterations": {str(number): loss for number, loss in found.loss_by_iterations.items()},
        "instance": {
            "document": document + 1,
            "id": row.id,
            "agreement": _finite_values(found.instance_agreement),
            "stop": found.instance_stop,
        },
    }


def _document_line(found: RoutingInspection, number: int, row: Document) -> dict[str, Any]:
    return {
        "document": number + 1,
        "id": row.id,
        "iterations": None if found.iterations is None else int(found.iterations[number]),
        "agreement": None if found.agreement is None else _finite_values(found.agreement[number]),
    }


def _finite_values(scores: np.ndarray | None) -> list[float] | None:
    """Return the scores for JSON, which has no NaN: values after a document stopped are left out."""
    return None if scores is None else [float(score) for score in scores[np.isfinite(scores)]]


def _counts(iterations: np.ndarray) -> dict[int, int]:
    numbers, counts = np.unique(iterations, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _print_summary(found: RoutingInspection, console: Console) -> None:
    fixed = found.instance_stop is None
    limit = f"{found.most_iterations} for every document" if fixed else f"at most {found.most_iterations}"
    console.print(f"routing {found.routing}, iterations: {limit}", highlight=False)
    if found.iterations is not None:
        table = _table("Iterations per document", "iterations", "documents", "share", "")
        for number, count in _counts(found.iterations).items():
            share = count / len(found.iterations)
            table.add_row(str(number), f"{count:,}", f"{share:.1%}", "█" * max(1, round(_BAR * share)))
        console.print(table)
    if found.agreement is not None:
        table = _table("Agreement (NAS), mean over documents", "iteration", "documents", "mean NAS")
        for number, count, mean in _mean_agreement(found.agreement):
            table.add_row(str(number), f"{count:,}", f"{mean:.4f}")
        console.print(table)
    if found.loss_by_iterations:
        table = _table("Loss by fixed iterations", "iterations", "loss per document")
        for number, loss in found.loss_by_iterations.items():
            table.add_row(str(number), f"{loss:.4f}")
        console.print(table)
    else:
        console.print("no document has a label that the model knows, so there is no loss to show")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table
