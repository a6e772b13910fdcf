"""`python -m benchmarks reproduce`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.options import Quiet


class TableName(StrEnum):
    """The tables and figures."""

    MAIN_TABLE = "main-table"
    LOW_RESOURCE = "low-resource"
    ROUTING_COMPARISON = "routing-comparison"
    PAPER_PARTS = "paper-parts"
    FUSION = "fusion"
    ANSWER_SELECTION = "answer-selection"
    COST = "cost"
    FIGURE_ROUTING = "figure-routing"


class Budget(StrEnum):
    """How much work a table takes."""

    SMOKE = "smoke"
    FULL = "full"


def reproduce(
    table: Annotated[TableName, typer.Argument(metavar="TABLE", help=f"{', '.join(TableName)}.")],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder with eurlex57k/, reuters21578/, trecqa/ and vectors/; see docs/reproduce.md. A "
            "smoke run needs none.",
        ),
    ] = None,
    budget: Annotated[
        Budget,
        typer.Option("--budget", metavar="NAME", help="smoke: small, on the embedded sample, minutes; full."),
    ] = Budget.FULL,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds", metavar="NUMBER", min=1, help="Seeds per system.  [default: as the table's plan says]"
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder for tables, plots and finished cells.")
    ] = Path("reproduction"),
    systems: Annotated[
        list[str] | None,
        typer.Option("--systems", metavar="NAME", help="Run only this system; may be repeated."),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", metavar="NUMBER", min=0, help="Cells at a time, in child processes; 0: in this one."
        ),
    ] = 0,
    run: Annotated[
        bool,
        typer.Option("--run/--no-run", help="Run what is missing, or show what is finished."),
    ] = True,
    commit: Annotated[
        str, typer.Option("--commit", metavar="HASH", help="The commit, where there is no checkout to ask.")
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Reproduce a table or figure of the paper.

    Trains every system of the table, writes TABLE.json, TABLE.md and plots with the paper's figures next to
    ours, and prints the table. Each finished cell is kept: after an interruption, the same command
    continues.
    """
    from rich.console import Console

    from nlpcapsule.errors import ConfigError

    if budget == Budget.FULL and data is None and table != TableName.COST:
        raise ConfigError("--budget full needs real data: give its folder with --data, or use --budget smoke")

    from benchmarks.reproduce import reproduce as make
    from benchmarks.table import Options

    console = Console(stderr=True, quiet=quiet)
    page = make(
        table.value,
        Options(
            output=output,
            data=data,
            budget=budget.value,
            seeds=seeds,
            systems=tuple(systems or ()),
            jobs=jobs,
            run=run,
            commit=commit,
            say=lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True),
        ),
    )
    typer.echo(page)
    console.print(f"wrote {output / table.value}.json, .md and plots", highlight=False, markup=False)
