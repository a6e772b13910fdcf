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
    """Train networks on the embedded sample, compare them, and write report.html."""
    from nlpcapsule.demo import run_demo

    run_demo(out, quiet)
