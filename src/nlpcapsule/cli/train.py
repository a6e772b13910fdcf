"""`nlpcapsule train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.options import (
    DocumentFile,
    Format,
    IdKey,
    LabelSeparator,
    LabelsKey,
    Quiet,
    SkipBadRows,
    Split,
    TextKey,
    TitleKey,
    questions_in,
    refuse_same_stdin,
)
from nlpcapsule.config import Config
from nlpcapsule.text.reading import ReadOptions


def train(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Training data: a file, a folder, or - for stdin.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Model folder to write.", metavar="MODEL")],
    dev: Annotated[str | None, typer.Option("--dev", help="Held-out data that selects the epoch.")] = None,
    task: Annotated[str, typer.Option("--task", help="labels or answers.")] = "labels",
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="label-query, paper, official, kim-cnn, xml-cnn.  [default: label-query]"
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="TOML file with settings.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be given several times."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that MODEL holds.")] = False,
    format: Format = "auto",
    text_key: TextKey = "text",
    labels_key: LabelsKey = "labels",
    id_key: IdKey = "id",
    title_key: TitleKey = "title",
    label_separator: LabelSeparator = None,
    split: Split = None,
    dev_split: Annotated[
        str | None, typer.Option("--dev-split", help="As --split, for the dev data.")
    ] = None,
    skip_bad_rows: SkipBadRows = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on your data and write it to a folder."""
    settled = Config.build(task, model, config, settings or ())
    refuse_same_stdin(train, dev)
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
    dev_reading = ReadOptions(**{**vars(reading), "split": dev_split})

    from nlpcapsule.training.fit_answers import fit_answers, prepare_answers
    from nlpcapsule.training.fit_labels import fit_labels, prepare_labels
    from nlpcapsule.training.progress import TrainingProgress
    from nlpcapsule.training.run_folder import RunFolder

    folder = RunFolder(out, resume)
    if resume and folder.finished:
        typer.echo(f"{out} is finished; nothing is left to do", err=True)
        return
    with TrainingProgress(quiet) as progress:
        if settled.task == "labels":
            documents = DocumentFile(train, reading)
            held_out = None if dev is None else DocumentFile(dev, dev_reading)
            data = prepare_labels(documents, held_out, settled)
            for source, file in ((train, documents), (dev, held_out)):
                if file is not None and file.report is not None:
                    progress.say(f"{source}: {file.report.summary()}")
            fit_labels(data, settled, folder, progress)
        else:
            questions, report = questions_in(train, reading)
            progress.say(f"{train}: {report.summary()}")
            dev_questions = None
            if dev is not None:
                dev_questions, report = questions_in(dev, dev_reading)
                progress.say(f"{dev}: {report.summary()}")
            fit_answers(prepare_answers(questions, dev_questions, settled), settled, folder, progress)
        progress.say(f"wrote {out}")
