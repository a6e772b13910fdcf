"""`python -m nlpcapsule.compare system`: the child process that `nlpcapsule compare` starts per system."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.errors import NlpCapsuleError, out_of_memory

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def main() -> None:
    """Run a part of a comparison; called by `nlpcapsule compare`."""
    from nlpcapsule.plugins import load_plugins

    load_plugins()


@app.command()
def system(
    spec: Annotated[str, typer.Argument(help="The system, as JSON.")],
    data: Annotated[Path, typer.Argument(help="Folder of the prepared data set.")],
    cells: Annotated[Path, typer.Argument(help="Folder of finished systems.")],
    commit: Annotated[str, typer.Option(help="The commit of the code.")] = "",
    pecos_python: Annotated[str | None, typer.Option(help="The Python that has libpecos.")] = None,
) -> None:
    """Train and measure one system."""
    from nlpcapsule.compare.child_process import leave_signals_to_parent

    leave_signals_to_parent()

    from nlpcapsule.compare.cell import Cell
    from nlpcapsule.compare.run_system import run_system

    run_system(Cell.from_json(json.loads(spec)), data, cells, commit, pecos_python)


if __name__ == "__main__":
    try:
        app()
    except NlpCapsuleError as error:
        print(f"error: {error}")
        sys.exit(2)
    except Exception as error:  # a third-party library may raise anything, and the comparison continues
        traceback.print_exc()
        print(f"error: {out_of_memory(error) or f'{type(error).__name__}: {error}'}")
        sys.exit(1)
