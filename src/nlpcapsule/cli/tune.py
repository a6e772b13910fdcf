"""`nlpcapsule tune`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import (
    RowFile,
    check_output_folder,
    errors_about,
    refuse_same_stdin,
    tell_bad_rows,
)
from nlpcapsule.cli.options import Device, Quiet, choose_device, reads_data
from nlpcapsule.config import PRESETS, Config
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.threads import use_threads


@reads_data(need_labels=True)
def tune(
    data: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Training data: a file, a folder, or - for stdin.")
    ],
    reading: ReadOptions,
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder of the search.")],
    dev: Annotated[
        str | None,
        typer.Option("--dev", metavar="DEV", help="Held-out data, on which settings are compared."),
    ] = None,
    trials: Annotated[
        int,
        typer.Option("--trials", metavar="NUMBER", min=1, help="Trainings in all, earlier ones included."),
    ] = 20,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The system.  [default: hybrid]")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help=f"Settings to start from: {', '.join(PRESETS)}."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE.toml", help="Settings, in TOML sections.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting, which is then not searched."),
    ] = None,
    device: Annotated[
        Device, typer.Option("--device", metavar="NAME", help="auto, cpu or cuda: where it is trained.")
    ] = "auto",
    quiet: Quiet = False,
) -> None:
    """Search for good settings on held-out documents.

    The best are written to DIR/best.toml, for `train --config`. Trainings with different settings are
    compared by nDCG@5 on held-out documents; poor ones are stopped early. The same command continues a
    search that was stopped.
    """
    use_threads(None)  # first: settings import torch, whose threads read the environment then
    refuse_same_stdin(data, dev)
    check_output_folder(output)
    held_out_by_default = {} if dev is not None else {"training.dev_fraction": 0.1}
    start = Config.build("labels", model, config, settings or (), None, preset)
    if not start.training.dev_fraction:
        start = Config.build("labels", model, config, settings or (), held_out_by_default, preset)
    choose_device(device)

    from nlpcapsule.training.prepared_labels import prepare_labels
    from nlpcapsule.training.progress import TrainingProgress
    from nlpcapsule.tuning.tune import BEST
    from nlpcapsule.tuning.tune import tune as search

    documents = RowFile(data, reading)
    with errors_about(data):
        prepared = prepare_labels(documents, None if dev is None else RowFile(dev, reading), start)
        tell_bad_rows(data, documents.report)
        fixed = {assignment.partition("=")[0]: None for assignment in settings or ()}
        try:
            with TrainingProgress(quiet) as progress:
                found = search(prepared, start, fixed, output, trials, progress)
        except KeyboardInterrupt:
            typer.echo("stopped; the same command continues the search", err=True)
            raise typer.Exit(130) from None
    if not quiet:
        stopped = f", {found.stopped} of them stopped early" if found.stopped else ""
        best = shlex.quote(str(output / BEST))
        typer.echo(f"best of {found.trials} trials{stopped}: nDCG@5 {found.value:.4f}", err=True)
        typer.echo(f"next: nlpcapsule train TRAIN --config {best} --output MODEL", err=True)
