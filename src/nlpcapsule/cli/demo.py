"""`nlpcapsule demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_output_folder
from nlpcapsule.cli.options import Quiet


def demo(
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder for the models, the data and report.html.")
    ] = Path("demo-output"),
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also train other networks and compare them."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train and use models on an embedded sample.

    In about a minute: trains the default model, prints its accuracy, tags three letters, ranks the answers to
    two questions and writes report.html with plots.
    """
    check_output_folder(output)
    from nlpcapsule.demo import run_demo

    run_demo(output, quiet, compare)
