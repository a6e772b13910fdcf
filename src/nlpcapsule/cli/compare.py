"""`nlpcapsule compare`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_folder_name, check_output_folder, tell_bad_rows
from nlpcapsule.cli.options import Quiet, reads_data
from nlpcapsule.compare.pecos_settings import PECOS_PYTHON
from nlpcapsule.compare.systems import DEFAULT_SYSTEMS, chosen_systems, system_settings
from nlpcapsule.config import DEFAULT_SYSTEM, PRESETS
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError


@reads_data(need_labels=True)
def compare(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Folder with train, dev and test files of yours.")
    ],
    reading: ReadOptions,
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems",
            metavar="NAMES",
            help="Models that `nlpcapsule train` knows, and pecos, separated by commas.  [default: "
            f"{','.join(DEFAULT_SYSTEMS['labels'])}; for answers {','.join(DEFAULT_SYSTEMS['answers'])}]",
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="labels or answers.  [default: as the rows tell]"),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder for the table and finished systems.")
    ] = Path("comparison"),
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SYSTEM.KEY=VALUE",
            help="One setting of a system, as in hybrid.epochs=5, or of all that have it, as in "
            "all.max_tokens=200; may be given several times.",
        ),
    ] = None,
    label_names: Annotated[
        Path | None,
        typer.Option(
            "--label-names",
            metavar="FILE",
            help="As --set hybrid.label_names=FILE: what labels are called, which hybrid uses.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", metavar="NAME", help=f"What hybrid's settings start from: {', '.join(PRESETS)}."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="NUMBER", min=0, help="Seed of every system.")] = 1,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", metavar="NUMBER", min=1, help="Systems at a time; 1 leaves times undisturbed."
        ),
    ] = 1,
    pecos_python: Annotated[
        str | None,
        typer.Option(
            "--pecos-python", metavar="PATH", envvar=PECOS_PYTHON, help="The Python that has libpecos."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Compare systems on your own data.

    Trains each on DIR's train file, selects on dev, reports on test, prints accuracy, accuracy on rare
    labels, calibration, time, memory and size side by side, and writes them as compare.json and compare.md.
    Without a dev file a tenth of train is selected on; without a test file dev is reported on. Each system
    runs in a child process. What is finished is kept: after an interruption, the same command continues.
    """
    from nlpcapsule.compare.data import open_folder

    check_folder_name(data)  # its name is the table's title
    check_output_folder(output)
    source = open_folder(data, reading, task)
    compared = chosen_systems(systems, source.kind)
    ours = DEFAULT_SYSTEM["labels"]
    if label_names and ours not in compared:
        raise NlpCapsuleError(f"--label-names is for {ours}, which is not among the systems compared")
    assignments = [*(settings or ()), *([f"{ours}.label_names={label_names}"] if label_names else [])]
    chosen = system_settings(compared, source.kind, assignments, preset)
    names = chosen.get(ours, {}).get("text.label_names")
    if names is not None:
        Thesaurus.read(names)  # validates it before anything is trained
        source = replace(source, label_names=Path(names))
    for path, report in source.counted.items():
        tell_bad_rows(str(path), report)

    from rich.console import Console

    from nlpcapsule.compare.comparison import NAME, CompareOptions
    from nlpcapsule.compare.comparison import compare as run

    console = Console(stderr=True, quiet=quiet)

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    options = CompareOptions(
        source, chosen, output, seed, jobs, pecos_python, assignments, quiet, say, preset, task
    )
    try:
        page, failures = run(options)
    except KeyboardInterrupt:
        typer.echo("stopped; the same command continues from here", err=True)
        raise typer.Exit(130) from None
    typer.echo(page)
    say(f"wrote {output / NAME}.json and .md")
    if failures:
        told = "\n".join(f"{name}: {why}" for name, why in failures.items())
        raise NlpCapsuleError(f"systems failed, the others are kept; the same command tries again:\n{told}")
