"""`nlpcapsule train`."""

from __future__ import annotations

import shlex
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlpcapsule.cli.device import Device, choose_device
from nlpcapsule.cli.files import (
    DocumentFile,
    check_output_folder,
    errors_about,
    questions_in,
    refuse_missing,
    refuse_same_stdin,
    say,
    shown,
)
from nlpcapsule.cli.options import Quiet, Threads, reads_data
from nlpcapsule.config import PRESETS, Config
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.threads import keep_faster_torch_threads, use_threads

if TYPE_CHECKING:
    from nlpcapsule.training.fit_answers import PreparedAnswers
    from nlpcapsule.training.prepared_labels import PreparedLabels


@reads_data(need_labels=True)
def train(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Training data: a file, a folder, or - for stdin.")
    ],
    reading: ReadOptions,
    output: Annotated[
        Path, typer.Option("--output", metavar="MODEL", help="Folder to write the model into.")
    ],
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev",
            metavar="DEV",
            help="Held-out data; training keeps the epoch with the best score on them.",
        ),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            "--task", metavar="TASK", help="labels: tag documents; answers: rank candidate answers."
        ),
    ] = "labels",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="hybrid, label-query, paper, omikuji, or another system that `nlpcapsule systems` lists.  "
            "[default: hybrid; for answers label-query]",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME",
            help="Encoder of the network: convolution, bilstm, or a pretrained transformer (a folder or an "
            "id on the Hugging Face hub).",
        ),
    ] = None,
    label_names: Annotated[
        Path | None,
        typer.Option(
            "--label-names",
            metavar="FILE",
            help="Names of the labels, which help labels with few or no examples; see docs/label-names.md.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help=f"Settings to start from: {', '.join(PRESETS)} (quick on a CPU).",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE.toml", help="TOML file of settings; see docs/configuration.md."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", metavar="NUMBER", min=1, help="Passes over the training data."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="NUMBER", min=0, help="Random seed.  [default: 1]"),
    ] = None,
    device: Annotated[
        Device, typer.Option("--device", metavar="NAME", help="Device to train on: auto, cpu or cuda.")
    ] = Device.AUTO,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as batch_size=16; may be repeated."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only print a plan: time and memory, from a few steps. Writes nothing."
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted training in MODEL.")
    ] = False,
    dev_split: Annotated[
        str | None, typer.Option("--dev-split", metavar="PART", help="As --split, for the dev data.")
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard curves into MODEL/tensorboard.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Train a model on your data and write it to a folder.

    TRAIN has one document per row: JSON Lines such as {"text": "...", "labels": ["one", "two"]}, or CSV or
    TSV with these columns. With --task answers it has one question per row: {"question": "...", "candidates":
    [{"text": "...", "label": 1}, {"text": "...", "label": 0}]}. docs/data-formats.md lists more formats.
    """
    given = {
        "encoder": encoder,
        "text.label_names": None if label_names is None else str(label_names),
        "epochs": epochs,
        "training.seed": seed,
    }
    overrides = {key: value for key, value in given.items() if value is not None}
    settled = Config.build(task, model, config, settings or (), overrides, preset)
    refuse_same_stdin(train, dev)
    if dev is None and dev_split is not None:
        raise NlpCapsuleError("--dev-split names a part of the dev data: name the data with --dev, too")
    check_output_folder(output)
    use_threads(threads)
    choose_device(device)

    dev_reading = replace(reading, split=dev_split)
    if dry_run:
        _print_plan(train, dev, reading, dev_reading, settled, quiet)
        return

    from nlpcapsule.training.fit_answers import fit_answers
    from nlpcapsule.training.fit_labels import fit_labels
    from nlpcapsule.training.progress import TrainingProgress
    from nlpcapsule.training.run_folder import RunFolder

    folder = RunFolder(output, resume, tensorboard)
    keep_faster_torch_threads(say, folder.threads)
    quiet = quiet or not folder.is_writer
    if resume and folder.finished:
        refuse_missing(train, dev, label_names)
        typer.echo(f"{output} is finished; nothing is left to do", err=True)
        return
    existed = output.exists()
    try:
        if settled.task == "labels":
            labels = _prepare_labels(train, dev, reading, dev_reading, settled, quiet)
            with TrainingProgress(quiet) as progress:
                fit_labels(labels, settled, folder, progress)
        else:
            answers = _prepare_answers(train, dev, reading, dev_reading, settled, quiet)
            with TrainingProgress(quiet) as progress:
                fit_answers(answers, settled, folder, progress)
    except KeyboardInterrupt:
        if folder.has_checkpoint:
            typer.echo("stopped; the same command with --resume continues from here", err=True)
        else:
            typer.echo("stopped before the first checkpoint; nothing is kept", err=True)
        raise typer.Exit(130) from None
    except Exception:
        if not resume and folder.is_writer:
            _take_back(output, existed)
        raise
    if not quiet:
        name = shlex.quote(str(output))
        typer.echo(f"the model is in {name}", err=True)
        typer.echo(f"next: nlpcapsule evaluate {name} DATA, or nlpcapsule predict {name} INPUT", err=True)


def _print_plan(
    train: str, dev: str | None, reading: ReadOptions, dev_reading: ReadOptions, config: Config, quiet: bool
) -> None:
    from nlpcapsule.training.plan import plan_answers, plan_labels

    if config.task == "labels":
        labels = _prepare_labels(train, dev, reading, dev_reading, config, quiet)
        lines = plan_labels(labels, config, typer.echo)
    else:
        answers = _prepare_answers(train, dev, reading, dev_reading, config, quiet)
        lines = plan_answers(answers, config, typer.echo)
    for line in lines:
        typer.echo(line)


def _prepare_labels(
    train: str, dev: str | None, reading: ReadOptions, dev_reading: ReadOptions, config: Config, quiet: bool
) -> PreparedLabels:
    from nlpcapsule.training.prepared_labels import prepare_labels

    documents = DocumentFile(train, reading)
    held_out = None if dev is None else DocumentFile(dev, dev_reading)
    with errors_about(train):
        data = prepare_labels(documents, held_out, config)
    _tell(train, documents.report, quiet)
    if held_out is not None:
        _tell(held_out.source, held_out.report, quiet)
    if data.dev is not None and not (data.dev.labels.values < len(data.labels)).any():
        _refuse_dev("no document has a label that a training document has", dev)
    return data


def _prepare_answers(
    train: str, dev: str | None, reading: ReadOptions, dev_reading: ReadOptions, config: Config, quiet: bool
) -> PreparedAnswers:
    from nlpcapsule.training.fit_answers import prepare_answers

    questions, report = questions_in(train, reading)
    _tell(train, report, quiet)
    held_out = None
    if dev is not None:
        held_out, report = questions_in(dev, dev_reading)
        _tell(dev, report, quiet)
    with errors_about(train):
        data = prepare_answers(questions, held_out, config)
    if data.dev is not None and not (data.dev.labels == 1).any():
        _refuse_dev("no candidate is marked right (label 1)", dev)
    return data


def _refuse_dev(problem: str, dev: str | None) -> None:
    """Reject dev data on which no metric can be computed, before anything is written."""
    source = "the part held out by training.dev_fraction" if dev is None else shown(dev)
    raise DataError(f"{problem}, so it cannot select an epoch", source, hint="give other dev data, or none")


def _take_back(out: Path, existed: bool) -> None:
    """Remove what a new run wrote if it failed before its network's first checkpoint."""
    from nlpcapsule.model_folder import LEXICAL

    weights = (path.relative_to(out) for path in out.rglob("*.safetensors"))
    if not out.exists() or any(LEXICAL not in path.parts for path in weights):
        return
    # Errors are ignored: the user needs to see why the run failed.
    for path in list(out.iterdir()):  # the folder itself may be a link, or `.`
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    if not existed:
        with suppress(OSError):
            out.rmdir()


def _tell(source: str, report: ReadReport, quiet: bool) -> None:
    if report.bad_rows or not quiet:
        typer.echo(f"{shown(source)}: {report.summary()}", err=True)
