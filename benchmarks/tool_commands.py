"""`python -m benchmarks learn-labels`, `faithfulness` and `load`: measure what is built around a model."""

from __future__ import annotations

import json
import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpcapsule.cli.options import Device, Threads, choose_device
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.threads import use_threads

if TYPE_CHECKING:
    from nlpcapsule.scoring.models import LabelModel


class LearnStep(StrEnum):
    """What one call of `learn-labels` does: a machine may be lent for minutes only."""

    ALL = "all"
    BEFORE = "before"
    SCRATCH = "scratch"


ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")]
DeviceOption = Annotated[Device, typer.Option("--device", metavar="NAME", help="auto, cpu or cuda.")]
CommitOption = Annotated[
    str,
    typer.Option(
        "--commit",
        metavar="HASH",
        envvar="NLPCAPSULE_COMMIT",
        help="The commit of the code, where there is no checkout to read it from.",
    ),
]


def learn_labels(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Folder of real data; see docs/reproduce.md.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="The data set.")] = "eurlex15k",
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="File to write.")] = Path(
        "results/learn-labels.json"
    ),
    models: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to keep both trained models in; those there are reused."),
    ] = None,
    step: Annotated[
        LearnStep,
        typer.Option(metavar="NAME", help="before, scratch: only train this model; all: the rest, too."),
    ] = LearnStep.ALL,
    labels: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Labels to hold back.")] = 200,
    first: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Training documents at most.")
    ] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help="Settings to start from.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be repeated.")
    ] = None,
    device: DeviceOption = "auto",
    threads: Threads = None,
    commit: CommitOption = "",
) -> None:
    """Measure how well and how fast `learn` adds labels, against training from scratch."""
    _compute_on(device, threads)
    commit = _known(commit)
    if step is not LearnStep.ALL and models is None:
        raise NlpCapsuleError(f"--step {step.value} trains a model to keep: name a folder with --models")
    from benchmarks.learn_labels import LearnBenchmark

    with TemporaryDirectory() as place:
        folder = Path(place) if models is None else models
        benchmark = LearnBenchmark.read(name, data, folder, labels, first, settings or [], preset)
        if step is not LearnStep.ALL:
            trained = benchmark.trained(step.value)
            typer.echo(f"{trained.folder}: {trained.seconds:.0f} seconds")
            return
        record = benchmark.measure()
    _write(output, commit, benchmark.fingerprint, [benchmark.config.training.seed], record)
    shown = ("report_positives", "seconds", "figures", "recall_kept", "time_share", "old_P@1_lost")
    typer.echo(json.dumps({key: record[key] for key in shown}, indent=2))


def faithfulness(
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents that it was not trained on.")],
    first: Annotated[
        int, typer.Option("--first", metavar="NUMBER", min=1, help="Documents to explain.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", metavar="NUMBER", min=0, help="Of the random words.")] = 1,
    output: Annotated[Path, typer.Option("--output", metavar="FILE.json", help="File to write.")] = Path(
        "results/faithfulness.json"
    ),
    device: DeviceOption = "auto",
    threads: Threads = None,
    commit: CommitOption = "",
) -> None:
    """Measure whether deleting the words that explanations name makes labels less probable."""
    _compute_on(device, threads)
    commit = _known(commit)
    from itertools import islice

    from benchmarks.faithfulness import faithfulness as measure
    from nlpcapsule.data.readers.document_files import read_documents
    from nlpcapsule.training.progress import TrainingProgress

    loaded = _label_model(model)
    documents = list(islice(read_documents(data), first))
    with TrainingProgress() as progress:
        progress.start("documents", total=len(documents))
        figures = measure(loaded, documents, seed=seed, advance=progress.advance)
    figures["model"] = _about(loaded)
    _write(output, commit, loaded.facts.data, [seed], figures)
    typer.echo(json.dumps({name: figures[name] for name in figures if "named" in name or name == "fall"}))


def load(
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Documents to send.")],
    callers: Annotated[int, typer.Option("--callers", metavar="NUMBER", min=1, help="At a time.")] = 50,
    seconds: Annotated[float, typer.Option("--seconds", metavar="NUMBER", min=1, help="How long.")] = 120,
    workers: Annotated[
        int, typer.Option("--workers", metavar="NUMBER", min=1, help="Processes of the service.")
    ] = 1,
    output: Annotated[Path, typer.Option("--output", metavar="FILE.json", help="File to write.")] = Path(
        "results/load.json"
    ),
    commit: CommitOption = "",
) -> None:
    """Put `nlpcapsule serve` under load, and check that no feedback is lost."""
    commit = _known(commit)
    from itertools import islice

    from benchmarks.load import batch_costs, load_test
    from nlpcapsule.data.readers.document_files import read_documents

    loaded = _label_model(model)
    texts = [document.text for document in islice(read_documents(data), 1_000)]
    figures = {
        "model": _about(loaded),
        "cost": batch_costs(loaded, texts),
        "load": load_test(model, texts, callers, seconds, workers),
    }
    _write(output, commit, loaded.facts.data, [loaded.config.training.seed], figures)
    typer.echo(json.dumps({name: figures[name] for name in ("cost", "load")}, indent=2))


def _compute_on(device: Device, threads: int | None) -> None:
    """Choose the device and the threads before torch is imported."""
    use_threads(threads)
    choose_device(device)
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a model that is loaded would take the GPU


def _known(commit: str) -> str:
    """Return the commit that results are from.

    Raises:
        NlpCapsuleError: If nothing says which it is.
    """
    from nlpcapsule.provenance import UNKNOWN_COMMIT, checked_out_commit

    commit = commit or checked_out_commit()
    if commit == UNKNOWN_COMMIT:
        raise NlpCapsuleError(
            "there is no checkout to read the commit from, and results name theirs: give it with --commit "
            "HASH or NLPCAPSULE_COMMIT"
        )
    return commit


def _write(output: Path, commit: str, data: str | None, seeds: list[int], figures: dict[str, Any]) -> None:
    """Write figures with the command and all else that they depend on."""
    from nlpcapsule.atomic_files import write_text
    from nlpcapsule.provenance import provenance

    arguments = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    command = f"python -m benchmarks {shlex.join(arguments)}"
    record = {**provenance(command, commit, data=data, seeds=seeds), **figures}
    write_text(output, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def _about(model: LabelModel) -> dict[str, Any]:
    """Return what kind of model the figures are of."""
    return {
        "name": model.config.model.name,
        "labels": len(model.labels),
        "training documents": model.facts.training_documents,
        "epochs": model.facts.epochs_run,
        "max_tokens": model.config.text.max_tokens,
    }


def _label_model(folder: Path) -> LabelModel:
    from nlpcapsule.model_folder import load_model
    from nlpcapsule.scoring.models import LabelModel

    model = load_model(folder)
    if not isinstance(model, LabelModel):
        raise NlpCapsuleError(f"{folder} ranks answers: expected a model that ranks labels")
    return model
