"""`python -m nlpcapsule.compare`: what `nlpcapsule compare` starts, and a maker of folders to compare on."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from nlpcapsule.errors import NlpCapsuleError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def prepare(
    data: Annotated[Path, typer.Argument(help="Folder of real data; see docs/reproduce.md.")],
    name: Annotated[str, typer.Argument(help="eurlex15k, microthesauri or reuters.")],
    out: Annotated[Path, typer.Argument(help="Folder to write train, dev and test into.")],
    first: Annotated[
        int | None, typer.Option("--first", min=1, help="Only so many documents of each part.")
    ] = None,
) -> None:
    """Write a data set of the paper's tables as a folder that `nlpcapsule compare --data` takes."""
    from nlpcapsule.compare.published import write_folder

    for part, count in write_folder(name, data, out, first).items():
        typer.echo(f"{part}: {count:,} documents")


@app.command()
def system(
    spec: Annotated[str, typer.Argument(help="The system, as JSON.")],
    data: Annotated[Path, typer.Argument(help="Folder of the prepared data set.")],
    cells: Annotated[Path, typer.Argument(help="Folder of finished systems.")],
    commit: Annotated[str, typer.Option(help="The commit the code is of.")] = "",
    pecos_python: Annotated[str | None, typer.Option(help="The Python that has libpecos.")] = None,
) -> None:
    """Train and measure one system."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this ends it
    process = os.getpid()

    def end(number: int, _: Any) -> None:
        if os.getpid() != process:
            os._exit(128 + number)  # a child that was forked has nothing to note
        sys.exit(128 + number)  # as an exception: the seconds of training so far are noted

    signal.signal(signal.SIGTERM, end)

    from nlpcapsule.compare.cell import run_system
    from nlpcapsule.experiments.run_cells import cell_from_json

    run_system(cell_from_json(spec), data, cells, commit, pecos_python)


if __name__ == "__main__":
    try:
        app()
    except NlpCapsuleError as error:
        print(f"error: {error}")
        sys.exit(2)
    except Exception as error:  # a system's own library may raise anything, and the comparison goes on
        traceback.print_exc()
        print(f"error: {type(error).__name__}: {error}")
        sys.exit(1)
