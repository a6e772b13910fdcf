"""`python -m nlpcapsule.experiments`: what `nlpcapsule reproduce` and the makers of this project call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.errors import NlpCapsuleError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def prepare(
    data: Annotated[Path, typer.Argument(help="Folder of real data.")],
    out: Annotated[Path, typer.Argument(help="Folder to write a folder per data set into.")],
    names: Annotated[
        list[str], typer.Argument(help="Data sets: eurlex15k, eurlex57k, microthesauri, reuters.")
    ],
) -> None:
    """Tokenise label data sets into compact arrays, for machines that the texts are not carried to."""
    from nlpcapsule.experiments.label_data import label_parts
    from nlpcapsule.experiments.named_labels import keep_label_names

    for name in names:
        parts = label_parts(name, data, out)
        named = keep_label_names(name, data, out / name)
        typer.echo(
            f"{name}: {len(parts.train)} train, {len(parts.select)} select, {len(parts.report)} report"
            + (", with label names" if named else "")
        )


@app.command()
def evidence(
    data: Annotated[Path, typer.Argument(help="Folder with the data set's arrays, as `prepare` wrote them.")],
    name: Annotated[str, typer.Argument(help="The data set.")],
    system: Annotated[str, typer.Option(help="one-vs-rest or omikuji.")] = "one-vs-rest",
    fraction: Annotated[float, typer.Option(help="Part of the training documents to learn from.")] = 1.0,
    label_names: Annotated[
        bool, typer.Option("--label-names", help="Also look for the label names that lie beside the arrays.")
    ] = False,
) -> None:
    """Find out what words say of a data set, for machines that lexical systems are not installed on."""
    from nlpcapsule.experiments.cell import training_data
    from nlpcapsule.experiments.label_data import label_parts
    from nlpcapsule.experiments.named_labels import with_label_names
    from nlpcapsule.experiments.stored_evidence import evidence_path, store_evidence

    parts, thesaurus = label_parts(name, data, data), None
    if label_names:
        parts, thesaurus = with_label_names(parts, data / name)
    path = evidence_path(data / name, system, fraction, label_names)
    store_evidence(training_data(parts, fraction, thesaurus), parts, system, path)
    typer.echo(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")


@app.command()
def cell(
    spec: Annotated[str, typer.Argument(help="The cell, as JSON.")],
    cells: Annotated[Path, typer.Argument(help="Folder of finished cells.")],
    data: Annotated[Path | None, typer.Option(help="Folder of real data.")] = None,
    commit: Annotated[str, typer.Option(help="The commit the code is of.")] = "",
) -> None:
    """Run one cell of a table."""
    from nlpcapsule.experiments.cell import run_cell
    from nlpcapsule.experiments.run_cells import cell_from_json

    run_cell(cell_from_json(spec), data, cells, commit)


@app.command()
def readme(
    path: Annotated[Path, typer.Argument(help="The README.")] = Path("README.md"),
    results: Annotated[Path, typer.Option(help="Folder of results files.")] = Path("results"),
) -> None:
    """Write the README's tables anew from the results files."""
    from nlpcapsule.atomic_files import write_text
    from nlpcapsule.experiments.readme import with_tables

    write_text(path, with_tables(path.read_text(encoding="utf-8"), results))


if __name__ == "__main__":
    try:
        app()
    except NlpCapsuleError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
