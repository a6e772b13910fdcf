"""`nlpcapsule train`."""

import shlex
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from nlpcapsule.cli import files
from nlpcapsule.cli.files import RowFile, say, shown
from nlpcapsule.cli.options import Device, Quiet, Threads, choose_device, reads_data
from nlpcapsule.config import PRESETS, Config
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.threads import keep_faster_torch_threads, use_threads

_MODEL_HELP = (
    "hybrid, label-query, paper, omikuji, or another system that `nlpcapsule systems` lists.  [default: "
    "hybrid; for answers label-query]"
)
_ENCODER_HELP = (
    "Encoder of the network: convolution, bilstm, or a pretrained transformer (a folder or an id on the "
    "Hugging Face hub)."
)
_NAMES_HELP = "Names of the labels, which help labels with few or no examples; see docs/label-names.md."
_PLAN_HELP = "Only print a plan: time and memory, from a few steps. Writes nothing."
_DEV_HELP = "Held-out data; training keeps the epoch with the best score on them."


@reads_data(need_labels=True)
def train(
    train: Annotated[str, Argument(metavar="TRAIN", help="Training data: a file, a folder, or - for stdin.")],
    reading: ReadOptions,
    output: Annotated[Path, Option(metavar="MODEL", help="Folder to write the model into.")],
    dev: Annotated[str | None, Option(metavar="DEV", help=_DEV_HELP)] = None,
    task: Annotated[
        str, Option(metavar="TASK", help="labels: tag documents; answers: rank candidate answers.")
    ] = "labels",
    model: Annotated[str | None, Option(metavar="NAME", help=_MODEL_HELP)] = None,
    encoder: Annotated[str | None, Option(metavar="NAME", help=_ENCODER_HELP)] = None,
    label_names: Annotated[Path | None, Option(metavar="FILE", help=_NAMES_HELP)] = None,
    preset: Annotated[
        str | None,
        Option(metavar="NAME", help=f"Settings to start from: {', '.join(PRESETS)} (quick on a CPU)."),
    ] = None,
    config: Annotated[
        Path | None, Option(metavar="FILE.toml", help="TOML file of settings; see docs/configuration.md.")
    ] = None,
    epochs: Annotated[
        int | None, Option(metavar="NUMBER", min=1, help="Passes over the training data.")
    ] = None,
    seed: Annotated[int | None, Option(metavar="NUMBER", min=0, help="Random seed.  [default: 1]")] = None,
    device: Annotated[Device, Option(metavar="NAME", help="Device to train on: auto, cpu or cuda.")] = "auto",
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A setting, such as batch_size=16; may be repeated."),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help=_PLAN_HELP)] = False,
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted training in MODEL.")] = False,
    dev_split: Annotated[str | None, Option(metavar="PART", help="As --split, for the dev data.")] = None,
    tensorboard: Annotated[
        bool, Option("--tensorboard", help="Also write TensorBoard curves into MODEL/tensorboard.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Train a model on your data and write it to a folder.

    TRAIN has one document per row: JSON Lines such as {"text": "...", "labels": ["one", "two"]}, or CSV or
    TSV with these columns. With --task answers it has one question per row: {"question": "...", "candidates":
    [{"text": "...", "label": 1}, {"text": "...", "label": 0}]}. docs/data-formats.md lists more formats.
    """
    use_threads(threads)  # first: settings import torch, whose threads read the environment then
    given = {
        "encoder": encoder,
        "text.label_names": None if label_names is None else str(label_names),
        "epochs": epochs,
        "training.seed": seed,
    }
    overrides = {key: value for key, value in given.items() if value is not None}
    settled = Config.build(task, model, config, settings or (), overrides, preset)
    files.refuse_same_stdin(train, dev)
    if dev is None and dev_split is not None:
        raise NlpCapsuleError("--dev-split names a part of the dev data: name the data with --dev, too")
    files.check_output_folder(output)
    choose_device(device)
    sources = (train, dev, reading, replace(reading, split=dev_split))
    if dry_run:
        from nlpcapsule.training.plan import plan_training
        from nlpcapsule.training.shared_work import this_process

        keep_faster_torch_threads(say)

        def tell(text: str) -> None:
            if this_process().is_main_process:  # of several
                typer.echo(text)

        for line in plan_training(_prepare(*sources, settled, quiet), settled, tell):
            tell(line)
        return

    from nlpcapsule.training.fit_answers import fit_answers
    from nlpcapsule.training.fit_labels import fit_labels
    from nlpcapsule.training.progress import TrainingProgress
    from nlpcapsule.training.run_folder import RunFolder

    folder = RunFolder(output, resume, tensorboard)
    keep_faster_torch_threads(say, folder.threads)
    quiet = quiet or not folder.is_writer
    if resume and folder.finished:
        files.refuse_missing(train, dev, label_names)
        say(f"{output} is finished; nothing is left to do")
        return
    existed = output.exists()
    try:
        data = _prepare(*sources, settled, quiet)
        with TrainingProgress(quiet) as progress:
            fit: Any = fit_labels if settled.task == "labels" else fit_answers
            fit(data, settled, folder, progress)
    except KeyboardInterrupt:
        if folder.has_checkpoint:
            say("stopped; the same command with --resume continues from here")
        else:
            say("stopped before the first checkpoint; nothing is kept")
        raise typer.Exit(130) from None
    except Exception:
        if not resume and folder.is_writer:
            _take_back(output, existed)
        raise
    if not quiet:
        name = shlex.quote(str(output))
        say(f"the model is in {name}")
        say(f"next: nlpcapsule evaluate {name} DATA, predict {name} INPUT, or serve {name}")


def _prepare(
    train: str, dev: str | None, reading: ReadOptions, dev_reading: ReadOptions, config: Config, quiet: bool
) -> Any:
    """Read the data; the rows of a stream, which are in memory, are gone when this returns."""
    from nlpcapsule.training.fit_answers import prepare_answers
    from nlpcapsule.training.prepared_labels import prepare_labels

    is_labels = config.task == "labels"
    read: Any = read_documents if is_labels else read_questions
    rows = RowFile(train, reading, read)
    held_out = None if dev is None else RowFile(dev, dev_reading, read)
    data: Any
    try:
        with files.errors_about(train):
            if is_labels:
                data = prepare_labels(rows, held_out, config)
            else:
                data = prepare_answers(list(rows), None if held_out is None else list(held_out), config)
    finally:  # skipped rows may be the reason of an error
        for file in (rows, held_out):
            if file is not None and file.report.rows and (file.report.bad_rows or not quiet):
                say(f"{shown(file.source)}: {file.report.summary()}")
    if is_labels and data.dev is not None and not (data.dev.labels.values < len(data.labels)).any():
        _refuse_dev("no document has a label that a training document has", dev)
    if not is_labels and data.dev is not None and not (data.dev.labels == 1).any():
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
