"""`nlpcapsule evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from nlpcapsule.atomic_files import write_text
from nlpcapsule.cli.options import (
    DocumentFile,
    Format,
    IdKey,
    LabelSeparator,
    LabelsKey,
    SkipBadRows,
    Split,
    TextKey,
    TitleKey,
    existing_parent,
    questions_in,
)
from nlpcapsule.errors import DataError
from nlpcapsule.text.reading import ReadOptions

if TYPE_CHECKING:
    from nlpcapsule.ranking.models import AnswerModel, LabelModel


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Labelled data: a file, a folder, or - for stdin.")
    ],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures, as fractions.")
    ] = None,
    strict_labels: Annotated[
        bool, typer.Option("--strict-labels", help="Refuse labels that training never saw.")
    ] = False,
    format: Format = "auto",
    text_key: TextKey = "text",
    labels_key: LabelsKey = "labels",
    id_key: IdKey = "id",
    title_key: TitleKey = "title",
    label_separator: LabelSeparator = None,
    split: Split = None,
    skip_bad_rows: SkipBadRows = False,
) -> None:
    """Measure a model on labelled data."""
    if json_file is not None:
        existing_parent(json_file)
    reading = ReadOptions(
        format=format,
        text_key=text_key,
        labels_key=labels_key,
        id_key=id_key,
        title_key=title_key,
        label_separator=label_separator,
        split=split,
        skip_bad_rows=skip_bad_rows,
    )
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.ranking.models import LabelModel

    loaded = load_model(model)
    if isinstance(loaded, LabelModel):
        figures = _evaluate_labels(loaded, data, reading, strict_labels)
    else:
        figures = _evaluate_answers(loaded, data, reading)
    if json_file is not None:
        write_text(json_file, json.dumps(figures, indent=2) + "\n")
    _print_figures(figures)


def _evaluate_labels(model: LabelModel, source: str, reading: ReadOptions, strict: bool) -> dict[str, Any]:
    from nlpcapsule.dataset.encoded import encode_documents
    from nlpcapsule.evaluation.label_metrics import label_metrics
    from nlpcapsule.training.label_task import RANKED

    documents = DocumentFile(source, reading)
    seen: dict[str, int] = {}

    def checked() -> Any:
        for document in documents:
            for label in document.labels:
                seen[label] = seen.get(label, 0) + 1
            yield document

    encoded = encode_documents(checked(), model.tokenizer, model.labels, model.config.text.max_tokens)
    unknown = [label for label in seen if label not in model.labels]
    if seen and (len(unknown) == len(seen) or (strict and unknown)):
        named = ", ".join(repr(label) for label in unknown[:3])
        which = "none of the labels is" if len(unknown) == len(seen) else f"{len(unknown)} labels are not"
        raise DataError(
            f"{which} known to the model (for example {named})",
            source,
            hint=f"it was trained on labels such as {model.labels.names[0]!r}",
        )
    rankings = model.rank_tokens(encoded.tokens, RANKED)
    return label_metrics(
        rankings.labels,
        rankings.scores,
        list(encoded.labels),
        model.labels.counts,
        model.facts["training_documents"],
        model.facts["threshold"],
    )


def _evaluate_answers(model: AnswerModel, source: str, reading: ReadOptions) -> dict[str, Any]:
    from nlpcapsule.evaluation.answer_metrics import answer_metrics

    questions, _ = questions_in(source, reading)
    labels = [[candidate.label for candidate in question.candidates] for question in questions]
    return answer_metrics(model.score(questions), labels)


def _print_figures(figures: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("figure", "value")
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}")
    Console().print(table)
