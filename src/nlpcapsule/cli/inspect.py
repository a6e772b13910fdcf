"""`nlpcapsule inspect`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from nlpcapsule.cli.files import RowFile, check_folder_name, check_output_folder, tell_bad_rows
from nlpcapsule.cli.options import ModelFolder, reads_data
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.threads import use_threads


@reads_data(need_labels=True)
def inspect(
    model: Annotated[Path, ModelFolder],
    data: Annotated[
        str, Argument(metavar="DATA", help="Labelled documents: a file, a folder, or - for stdin.")
    ],
    reading: ReadOptions,
    output: Annotated[
        Path | None, Option(metavar="DIR", help="Folder for plots and numbers.  [default: MODEL/inspection]")
    ] = None,
    document: Annotated[
        int, Option(metavar="NUMBER", min=1, help="Document to plot alone, counted from 1.")
    ] = 1,
) -> None:
    """Show how the routing of a capsule network converges.

    Prints and plots how many iterations documents take, how agreement and loss change with them, and which
    labels enter or leave the five best, over all documents and for a single one. Works for models with a
    routing, such as hybrid, label-query and paper.
    """
    check_folder_name(model)
    from nlpcapsule.model_folder.manifest import INSPECTION

    folder = output or model / INSPECTION
    check_output_folder(folder)
    use_threads(None)
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.report.inspection import inspect_model
    from nlpcapsule.scoring.models import LabelModel

    loaded = load_model(model)
    file = RowFile(data, reading)
    # The training data of an answer model are not documents: it is rejected below, unread.
    documents = list(file) if isinstance(loaded, LabelModel) else []
    tell_bad_rows(data, file.report)
    inspect_model(loaded, documents, folder, document - 1)
