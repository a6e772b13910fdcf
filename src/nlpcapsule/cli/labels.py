"""`nlpcapsule labels`: the labels of a trained model."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_folder_name, check_output_folder
from nlpcapsule.cli.learn import NewModel, load_labels, write_changed
from nlpcapsule.cli.options import ModelFolder, Quiet
from nlpcapsule.errors import DataError

labels = typer.Typer(no_args_is_help=True, help="List, rename, merge or retire a model's labels.")


@labels.command("list")
def list_labels(model: Annotated[Path, ModelFolder]) -> None:
    """Print a model's labels and their training documents, most frequent first, as JSON Lines."""
    check_folder_name(model)
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.scoring.models import LabelModel

    loaded = load_model(model)
    if not isinstance(loaded, LabelModel):
        raise DataError("this model ranks answers and has no labels", model)
    for row in json.loads(loaded.labels.to_json()):
        typer.echo(json.dumps(row, ensure_ascii=False))


@labels.command("rename")
def rename(
    model: Annotated[Path, ModelFolder],
    old: Annotated[str, typer.Argument(metavar="OLD", help="The label.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="What it is called from now on.")],
    output: NewModel = None,
    quiet: Quiet = False,
) -> None:
    """Rename a label."""
    from nlpcapsule.learning.label_edits import rename_label

    _check(model, output)
    changed = rename_label(load_labels(model), old, new)
    write_changed(changed, model, output, f"renamed {old} to {new}", quiet)


@labels.command("merge")
def merge(
    model: Annotated[Path, ModelFolder],
    merged: Annotated[list[str], typer.Argument(metavar="LABEL", help="Labels that end.")],
    into: Annotated[str, typer.Option("--into", metavar="LABEL", help="The label that continues them.")],
    output: NewModel = None,
    quiet: Quiet = False,
) -> None:
    """Merge labels into another one, which is trained on the documents of all."""
    from nlpcapsule.learning.label_edits import merge_labels
    from nlpcapsule.training.progress import TrainingProgress

    _check(model, output)
    with TrainingProgress(quiet) as progress:
        changed = merge_labels(load_labels(model), merged, into, progress)
    write_changed(changed, model, output, f"merged {', '.join(merged)} into {into}", quiet)


@labels.command("retire")
def retire(
    model: Annotated[Path, ModelFolder],
    retired: Annotated[list[str], typer.Argument(metavar="LABEL", help="Labels to remove.")],
    output: NewModel = None,
    quiet: Quiet = False,
) -> None:
    """Remove labels, which are then never predicted; their documents stay."""
    from nlpcapsule.learning.label_edits import retire_labels

    _check(model, output)
    changed = retire_labels(load_labels(model), retired)
    write_changed(changed, model, output, f"retired {', '.join(retired)}", quiet)


def _check(model: Path, output: Path | None) -> None:
    check_folder_name(model)
    if output is not None:
        check_output_folder(output)
