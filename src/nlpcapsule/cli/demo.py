"""`nlpcapsule demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_output_folder
from nlpcapsule.cli.options import Quiet


def demo(
    output: Annotated[Path, typer.Option("--output", help="Folder for models, data and report.html.")] = Path(
        "demo-output"
    ),
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also train the networks it is compared with."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Show on an embedded sample what the package does, in about a minute.

    Trains the default, prints its figures, tags three letters, ranks the answers to two questions and writes
    report.html with the curves.
    """
    check_output_folder(output)
    from nlpcapsule.demo import run_demo

    run_demo(output, quiet, compare)
