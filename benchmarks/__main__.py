"""`python -m benchmarks`: reproduce the paper's tables, and prepare data for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from benchmarks import reproduce_command, tool_commands
from benchmarks.speed import command as speed_command
from nlpcapsule.errors import NlpCapsuleError

# Typer uses click's errors or its built-in copies; this is the UsageError of either.
UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="benchmarks",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("reproduce")(reproduce_command.reproduce)
app.command("learn-labels")(tool_commands.learn_labels)
app.command("faithfulness")(tool_commands.faithfulness)
app.command("load")(tool_commands.load)
app.add_typer(speed_command.app, name="speed")


@app.command()
def prepare(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Folder of real data; see docs/reproduce.md.")],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder for a folder per data set.")],
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Data sets: eurlex15k, eurlex57k, microthesauri, reuters."),
    ],
) -> None:
    """Tokenize label data sets into compact arrays, for machines that do not have the texts."""
    from benchmarks.label_data import label_parts
    from benchmarks.named_labels import keep_label_names

    for name in names:
        parts = label_parts(name, data, output)
        named = keep_label_names(name, data, output / name)
        typer.echo(
            f"{name}: {len(parts.train)} train, {len(parts.select)} select, {len(parts.report)} report"
            + (", with label names" if named else "")
        )


@app.command()
def evidence(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Folder of arrays that `prepare` wrote.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The data set.")],
    system: Annotated[str, typer.Option(metavar="NAME", help="one-vs-rest or omikuji.")] = "one-vs-rest",
    fraction: Annotated[
        float, typer.Option(metavar="NUMBER", help="Part of the training documents to learn from.")
    ] = 1.0,
    label_names: Annotated[
        bool, typer.Option("--label-names", help="Also match the label names stored next to the arrays.")
    ] = False,
) -> None:
    """Store the features of a lexical system, for machines where it is not installed."""
    from benchmarks.label_data import label_parts
    from benchmarks.label_name_files import with_label_names
    from benchmarks.run_labels import training_data
    from benchmarks.stored_evidence import evidence_path, store_evidence

    parts, thesaurus = label_parts(name, data, data), None
    if label_names:
        parts, thesaurus = with_label_names(parts, data / name)
    path = evidence_path(data / name, system, fraction, label_names)
    store_evidence(training_data(parts, fraction, thesaurus), parts, system, path)
    typer.echo(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")


@app.command()
def cell(
    spec: Annotated[str, typer.Argument(metavar="JSON", help="The cell.")],
    cells: Annotated[Path, typer.Argument(metavar="CELLS", help="Folder of finished cells.")],
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of real data.")] = None,
    commit: Annotated[str, typer.Option(metavar="HASH", help="The commit of the code.")] = "",
) -> None:
    """Run one cell of a table; `reproduce --jobs` starts this."""
    from nlpcapsule.processes import leave_signals_to_parent

    leave_signals_to_parent()

    from benchmarks.cell import Cell
    from benchmarks.run_cell import run_cell

    run_cell(Cell(**json.loads(spec)), data, cells, commit)


@app.command()
def export(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Folder of real data; see docs/reproduce.md.")],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="eurlex15k, eurlex57k, microthesauri or reuters.")
    ],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder for train, dev and test.")],
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="NUMBER", min=1, help="Documents of each part at most, at random."),
    ] = None,
) -> None:
    """Write a label data set as a folder that `nlpcapsule compare --data` reads."""
    from benchmarks.export import write_folder

    for part, count in write_folder(name, data, output, sample).items():
        typer.echo(f"{part}: {count:,} documents")


@app.command()
def difference(
    table: Annotated[reproduce_command.TableName, typer.Argument(metavar="TABLE", help="The table.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="The data set, as the table calls it.")],
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A row of the table.")],
    rival: Annotated[str, typer.Argument(metavar="RIVAL", help="The row to compare it with.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the table and its cells.")] = Path(
        "results"
    ),
    fraction: Annotated[
        float, typer.Option(metavar="NUMBER", help="Part of the training documents of both.")
    ] = 1.0,
    growth: Annotated[
        bool, typer.Option("--growth", help="How much the lead grows from all documents to half of them.")
    ] = False,
) -> None:
    """Print the difference between two rows of a table with its 95% interval, in points."""
    from benchmarks.difference import lead_growth, row_difference
    from benchmarks.plan import read_plan

    plan, cells = read_plan(table.value), output / "cells" / "full"
    if growth:
        found = lead_growth(plan, cells, data, system, rival)
    else:
        found = row_difference(plan, cells, data, system, rival, fraction)
    for figure, each in found.items():
        points = (100 * value for value in (each.difference, each.low, each.high))
        typer.echo("{}: {:+.2f} [{:+.2f}, {:+.2f}]".format(figure, *points))


@app.command()
def readme(
    root: Annotated[Path, typer.Argument(metavar="FOLDER", help="The checkout.")] = Path(),
) -> None:
    """Write the tables of README.md and docs/ from the results files."""
    from benchmarks.readme import pages, with_tables
    from nlpcapsule.atomic_files import write_text

    for page in pages(root):
        write_text(page, with_tables(page.read_text(encoding="utf-8"), root / "results"))


def main() -> None:
    """Run a command; an error of the user is one message and exit code 2."""
    try:
        sys.exit(app(sys.argv[1:], prog_name="python -m benchmarks", standalone_mode=False))
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
            error.show()
            sys.exit(2)
        command = error.ctx.command_path if error.ctx else "python -m benchmarks"
        _fail(f"{error.format_message().rstrip('.')} (see `{command} --help`)")
    except (NlpCapsuleError, OSError) as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
