"""`nlpcapsule demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.options import Quiet


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for models, data and report.html.")] = Path(
        "demo-output"
    ),
    quiet: Quiet = False,
) -> None:
    """Compare networks on the embedded sample.

    Trains them, prints one table, tags a few documents and writes report.html with the curves.
    """
    from nlpcapsule.demo import run_demo

    run_demo(out, quiet)
