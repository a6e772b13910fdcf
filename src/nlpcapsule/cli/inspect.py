"""`nlpcapsule inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.options import (
    Format,
    IdKey,
    LabelSeparator,
    LabelsKey,
    SkipBadRows,
    Split,
    TextKey,
    TitleKey,
)
from nlpcapsule.text.reading import ReadOptions


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Labelled documents: a file, a folder, or -.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the plots.  [default: MODEL/inspection]")
    ] = None,
    document: Annotated[
        int, typer.Option("--document", min=1, help="The document of the instance-level curve, from 1.")
    ] = 1,
    format: Format = "auto",
    text_key: TextKey = "text",
    labels_key: LabelsKey = "labels",
    id_key: IdKey = "id",
    title_key: TitleKey = "title",
    label_separator: LabelSeparator = None,
    split: Split = None,
    skip_bad_rows: SkipBadRows = False,
) -> None:
    """Look into the routing: agreement by iteration, iterations per document, loss by iterations."""
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
    from nlpcapsule.diagnostics.inspection import inspect_model
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.text.document_files import read_documents

    loaded = load_model(model)
    documents = list(read_documents(data, reading))
    inspect_model(loaded, documents, out or model / "inspection", document - 1)
