"""`nlpcapsule evaluate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from nlpcapsule.atomic_files import write_text
from nlpcapsule.cli.files import (
    DocumentFile,
    check_folder_name,
    check_output_file,
    errors_about,
    questions_in,
    say,
    shown,
    tell_bad_rows,
)
from nlpcapsule.cli.options import ModelFolder, Quiet, Threads, reads_data
from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import DataError, quoted
from nlpcapsule.threads import keep_faster_torch_threads, use_threads

if TYPE_CHECKING:
    from nlpcapsule.data.labels import LabelVocabulary
    from nlpcapsule.scoring.models import AnswerModel, LabelModel
    from nlpcapsule.training.progress import TrainingProgress


@reads_data(need_labels=True)
def evaluate(
    model: Annotated[Path, ModelFolder],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Labelled data: a file, a folder, or - for stdin.")
    ],
    reading: ReadOptions,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE.json", help="Also write the metrics to a JSON file."),
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="Also write a page with intervals, calibration, confused labels and the worst documents.",
        ),
    ] = None,
    strict_labels: Annotated[
        bool,
        typer.Option(
            "--strict-labels", help="Fail if the data have labels that the training data did not have."
        ),
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compute metrics of a model on labelled data.

    Prints precision@k, nDCG@k, F1 and more for a model that ranks labels, MAP and MRR for one that ranks
    answers. All are fractions of 1.
    """
    check_folder_name(model)
    check_output_file(json_file, "--json", data, model)
    use_threads(threads)
    check_output_file(report_file, "--report", data, model)
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.scoring.models import LabelModel
    from nlpcapsule.training.progress import TrainingProgress

    keep_faster_torch_threads(say)
    loaded = load_model(model)
    with errors_about(data), TrainingProgress(quiet) as progress:
        if isinstance(loaded, LabelModel) and report_file is not None:
            figures = _write_report(loaded, model, data, reading, strict_labels, report_file, progress)
        elif isinstance(loaded, LabelModel):
            figures = _evaluate_labels(loaded, data, reading, strict_labels, progress)
        elif report_file is not None:
            raise DataError("--report is for models that rank labels", model, hint="leave it out")
        else:
            figures = _evaluate_answers(loaded, data, reading, progress)
    if json_file is not None:
        write_text(json_file, json.dumps(figures, indent=2) + "\n")
    _print_figures(figures)


def _evaluate_labels(
    model: LabelModel, source: str, reading: ReadOptions, strict: bool, progress: TrainingProgress
) -> dict[str, Any]:
    from nlpcapsule.data.encoded import encode_documents

    file = DocumentFile(source, reading)
    names: dict[str, None] = {}  # an ordered set, for the message

    def documents() -> Iterator[Document]:
        for document in file:
            names.update(dict.fromkeys(document.labels))
            yield document

    encoded = encode_documents(documents(), model.tokenizer, model.labels, model.config.text.max_tokens)
    tell_bad_rows(source, file.report)
    _check_labels(list(names), model.labels, source, strict)
    progress.start("documents", len(encoded))
    return model.evaluate(encoded, advance=progress.advance)


def _write_report(
    model: LabelModel,
    folder: Path,
    source: str,
    reading: ReadOptions,
    strict: bool,
    path: Path,
    progress: TrainingProgress,
) -> dict[str, Any]:
    """Measure a model and write the page; the documents' texts are kept in memory for it."""
    from nlpcapsule.report.evaluation import evaluate_for_report
    from nlpcapsule.report.page import evaluation_html

    file = DocumentFile(source, reading)
    documents = list(file)
    tell_bad_rows(source, file.report)
    names = dict.fromkeys(label for document in documents for label in document.labels)
    _check_labels(list(names), model.labels, source, strict)
    facts = {
        "model": folder.name or str(folder),
        "version": str(model.facts.version or 1),
        "system": model.config.model.name,
        "data": shown(source),
        "documents": f"{len(documents):,}",
        "labels of the model": f"{len(model.labels):,}",
        "training documents": f"{model.facts.training_documents:,}",
    }
    progress.start("documents", len(documents))
    report = evaluate_for_report(model, documents, facts, progress.advance)
    write_text(path, evaluation_html(report))
    return report.figures


def _check_labels(names: list[str], known: LabelVocabulary, source: str, strict: bool) -> None:
    """Reject labels that cannot be measured, before the documents are ranked."""
    if not names:
        raise DataError(
            "no document has a label, so there is nothing to measure",
            shown(source),
            hint="give labelled data",
        )
    unknown = [name for name in names if name not in known]
    if len(unknown) == len(names) or (strict and unknown):
        which = "none of the labels is" if len(unknown) == len(names) else f"{len(unknown):,} labels are not"
        examples = ", ".join(quoted(name) for name in unknown[:3])
        raise DataError(
            f"{which} known to the model (for example {examples})",
            shown(source),
            hint=f"it was trained on labels such as {quoted(known.ids[0])}",
        )


def _evaluate_answers(
    model: AnswerModel, source: str, reading: ReadOptions, progress: TrainingProgress
) -> dict[str, Any]:
    questions, report = questions_in(source, reading)
    tell_bad_rows(source, report)
    progress.start("questions", len(questions))
    return model.evaluate(questions, progress.advance)


def _print_figures(figures: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("figure", "value")
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}")
    Console().print(table)
