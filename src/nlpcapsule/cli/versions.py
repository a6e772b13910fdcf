"""`nlpcapsule versions`: the versions of a model in one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpcapsule.cli.files import RowFile, check_folder_name, errors_about, say
from nlpcapsule.cli.options import ModelFolder, Quiet, reads_data
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import DataError, printable

if TYPE_CHECKING:
    from nlpcapsule.learning.versions import Version

versions = typer.Typer(no_args_is_help=True, help="List, compare or roll back a model's versions.")

_SHOWN = 10  # labels listed by name
_FIGURES = ("P@1", "P@3", "P@5", "nDCG@5", "recall@5", "micro-F1", "ECE@5")


@versions.command("list")
def list_versions(
    model: Annotated[Path, ModelFolder],
    as_json: Annotated[bool, typer.Option("--json-lines", help="Print one JSON object per version.")] = False,
) -> None:
    """List a model's versions, oldest first; the current one is marked."""
    check_folder_name(model)
    from rich.console import Console
    from rich.table import Table

    from nlpcapsule.learning.versions import list_versions as all_versions

    found = all_versions(model)
    if as_json:
        for version in found:
            typer.echo(json.dumps(_record(version), ensure_ascii=False))
        return
    table = Table("version", "labels", "documents", "what", box=None, pad_edge=False, header_style="bold")
    for version in found:
        record = _record(version)
        mark = " (current)" if version.is_current else ""
        table.add_row(
            f"{version.number}{mark}",
            str(record["labels"]),
            str(record["documents"]),
            printable(version.what),
        )
    Console(markup=False, highlight=False).print(table)


@versions.command("compare")
@reads_data(need_labels=True)
def compare(
    model: Annotated[Path, ModelFolder],
    first: Annotated[int, typer.Argument(metavar="FIRST", help="Number of a version.")],
    second: Annotated[int, typer.Argument(metavar="SECOND", help="Number of another version.")],
    reading: ReadOptions,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DATA", help="Labelled data on which both are measured, too."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Print how two versions differ, in labels and, with --data, in accuracy, as JSON."""
    check_folder_name(model)
    from nlpcapsule.learning.versions import find_version

    before, after = find_version(model, first), find_version(model, second)
    found: dict[str, Any] = {
        "versions": [_record(before), _record(after)],
        "new_labels": sorted(after.labels.keys() - before.labels.keys())[:_SHOWN],
        "new_label_count": len(after.labels.keys() - before.labels.keys()),
        "missing_labels": sorted(before.labels.keys() - after.labels.keys())[:_SHOWN],
        "missing_label_count": len(before.labels.keys() - after.labels.keys()),
    }
    if data is not None:
        documents = RowFile(data, reading)
        with errors_about(data):
            figures = [_figures(model, version.number, documents, quiet) for version in (before, after)]
        found["figures"] = {
            name: {
                "first": figures[0][name],
                "second": figures[1][name],
                "difference": figures[1][name] - figures[0][name],
            }
            for name in _FIGURES
            if name in figures[0] and name in figures[1]
        }
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


@versions.command("rollback")
def rollback(
    model: Annotated[Path, ModelFolder],
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version to load from now on.")],
) -> None:
    """Make another version the current one; no version is removed."""
    check_folder_name(model)
    from nlpcapsule.learning.versions import roll_back

    roll_back(model, version)
    say(f"version {version} of {model} is current")


def _figures(folder: Path, number: int, documents: RowFile, quiet: bool) -> dict[str, float]:
    """Measure a version on documents."""
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.scoring.models import LabelModel
    from nlpcapsule.training.progress import TrainingProgress

    model = load_model(folder, version=number)
    if not isinstance(model, LabelModel):
        raise DataError("this model ranks answers: measure it with `nlpcapsule evaluate`", folder)
    encoded = model.encode_documents(documents)
    with TrainingProgress(quiet) as progress:
        progress.start(f"version {number}", len(encoded))
        return model.evaluate(encoded, advance=progress.advance)


def _record(version: Version) -> dict[str, Any]:
    return {
        "version": version.number,
        "current": version.is_current,
        "labels": len(version.labels),
        "documents": version.facts.training_documents,
        "what": version.what,
    }
