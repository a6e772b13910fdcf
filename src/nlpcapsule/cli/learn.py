"""`nlpcapsule learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlpcapsule.cli.files import check_folder_name, check_output_folder, errors_about, say, tell_bad_rows
from nlpcapsule.cli.options import ModelFolder, Quiet, reads_data
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.threads import use_threads

if TYPE_CHECKING:
    from nlpcapsule.scoring.models import LabelModel

NewModel = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="NEW_MODEL",
        help="Model folder to write; left out, the result becomes the next version inside MODEL.",
    ),
]


@reads_data(need_labels=True)
def learn(
    model: Annotated[Path, ModelFolder],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="Labelled documents: a file, a folder, or - for stdin.")
    ],
    reading: ReadOptions,
    output: NewModel = None,
    quiet: Quiet = False,
) -> None:
    """Teach a trained model further documents and new labels.

    It is not trained from scratch. Rows are documents as for `train`; labels that the model does not know
    are added. Rows of JSON Lines may also have a list of rejected labels under the key `rejected`, as
    `nlpcapsule feedback export` writes them.
    """
    check_folder_name(model)
    if output is not None:
        check_output_folder(output)
    use_threads(None)
    from nlpcapsule.learning.examples import read_examples
    from nlpcapsule.learning.learn import learn as learn_examples
    from nlpcapsule.training.progress import TrainingProgress

    loaded = load_labels(model)
    report = ReadReport(say=say)
    examples = read_examples(new, reading, report)
    tell_bad_rows(new, report)
    with errors_about(str(model)), TrainingProgress(quiet) as progress:
        learned = learn_examples(loaded, examples, progress)
    write_changed(learned.model, model, output, learned.summary(), quiet)


def load_labels(folder: Path) -> LabelModel:
    """Load a label model.

    Raises:
        DataError: If the folder holds an answer model.
    """
    from nlpcapsule.learning.label_changes import hybrid_of
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.scoring.models import LabelModel

    loaded = load_model(folder)
    with errors_about(str(folder)):
        hybrid_of(loaded)
    assert isinstance(loaded, LabelModel)
    return loaded


def write_changed(changed: LabelModel, folder: Path, output: Path | None, summary: str, quiet: bool) -> None:
    """Write a changed model as the next version of its folder, or into another folder, and report it."""
    from nlpcapsule.learning.versions import write_version
    from nlpcapsule.model_folder import save_model

    if output is None:
        where = f"version {write_version(changed, folder)} of {folder}"
    else:
        save_model(changed, output)
        where = str(output)
    if not quiet:
        say(f"{summary}: {where}")
