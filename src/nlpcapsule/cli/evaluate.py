"""`nlpcapsule evaluate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from typer import Argument, Option

from nlpcapsule.atomic_files import write_text
from nlpcapsule.cli import files
from nlpcapsule.cli.files import RowFile
from nlpcapsule.cli.options import ModelFolder, Quiet, Threads, reads_data
from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import DataError
from nlpcapsule.threads import keep_faster_torch_threads, use_threads

if TYPE_CHECKING:
    from nlpcapsule.scoring.models import LabelModel
    from nlpcapsule.training.progress import TrainingProgress

_REPORT_HELP = "Also write a page with intervals, calibration, confused labels and the worst documents."
_STRICT_HELP = "Fail if the data have labels that the training data did not have."


@reads_data(need_labels=True)
def evaluate(
    model: Annotated[Path, ModelFolder],
    data: Annotated[str, Argument(metavar="DATA", help="Labelled data: a file, a folder, or - for stdin.")],
    reading: ReadOptions,
    json_file: Annotated[
        Path | None, Option("--json", metavar="FILE.json", help="Also write the metrics to a JSON file.")
    ] = None,
    report_file: Annotated[Path | None, Option("--report", metavar="FILE.html", help=_REPORT_HELP)] = None,
    strict_labels: Annotated[bool, Option("--strict-labels", help=_STRICT_HELP)] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compute metrics of a model on labelled data.

    Prints precision@k, nDCG@k, F1 and more for a model that ranks labels, MAP and MRR for one that ranks
    answers. All are fractions of 1.
    """
    files.check_folder_name(model)
    files.check_output_file(json_file, "--json", data, model)
    files.check_output_file(report_file, "--report", data, model)
    use_threads(threads)
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.scoring.models import LabelModel
    from nlpcapsule.training.progress import TrainingProgress

    keep_faster_torch_threads(files.say)
    loaded = load_model(model)
    with files.errors_about(data), TrainingProgress(quiet) as progress:
        if isinstance(loaded, LabelModel):
            file = RowFile(data, reading)
            figures = _evaluate_labels(loaded, model, file, strict_labels, report_file, progress)
        elif report_file is not None:
            raise DataError("--report is for models that rank labels", model, hint="leave it out")
        else:
            file = RowFile(data, reading, read_questions)
            questions = list(file)
            files.tell_bad_rows(data, file.report)
            progress.start("questions", len(questions))
            figures = loaded.evaluate(questions, progress.advance)
    if json_file is not None:
        write_text(json_file, json.dumps(figures, indent=2) + "\n")
    _print_figures(figures)


def _evaluate_labels(
    model: LabelModel,
    folder: Path,
    file: RowFile,
    strict: bool,
    page: Path | None,
    progress: TrainingProgress,
) -> dict[str, Any]:
    """Measure a model, and write the page if asked for; the documents' texts are kept in memory for it."""
    names: dict[str, None] = {}  # an ordered set, for the message

    def documents() -> Iterator[Document]:
        for document in file:
            names.update(dict.fromkeys(document.labels))
            yield document

    found: Any = list(documents()) if page is not None else model.encode_documents(documents())
    files.tell_bad_rows(file.source, file.report)
    model.check_measurable(names, strict)
    progress.start("documents", len(found))
    if page is None:
        return model.evaluate(found, advance=progress.advance)
    from nlpcapsule.report.evaluation import evaluate_for_report
    from nlpcapsule.report.page import evaluation_html

    facts = {"model": folder.name or str(folder), "data": files.shown(file.source)}
    report = evaluate_for_report(model, found, facts, progress.advance)
    write_text(page, evaluation_html(report))
    return report.figures


def _print_figures(figures: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("figure", "value")
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}")
    Console().print(table)
