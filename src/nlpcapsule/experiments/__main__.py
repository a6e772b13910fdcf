"""`python -m nlpcapsule.experiments`: prepare a data set, run plans, and show what they gave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.errors import NlpCapsuleError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def prepare(
    data: Annotated[Path, typer.Argument(help="Folder with eurlex57k/ and vectors/.")],
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    max_tokens: int = 1_000,
) -> None:
    """Tokenise eurlex15k into compact arrays."""
    from nlpcapsule.experiments.eurlex15k import prepare_eurlex15k

    parts = prepare_eurlex15k(data, max_tokens)
    parts.save(out)
    typer.echo(
        f"{parts.name}: {len(parts.train)} train, {len(parts.select)} select, {len(parts.report)} report"
    )


@app.command()
def cell(data: Path, plan: Path, system: str, seed: int, cells: Path) -> None:
    """Run one system with one seed."""
    from nlpcapsule.experiments.cell import run_cell
    from nlpcapsule.experiments.comparison import find_system
    from nlpcapsule.experiments.encoded_folder import EncodedParts

    row = find_system(plan, system)
    path = cells / f"{system}-seed{seed}.json"
    run_cell(EncodedParts.load(data), system, row["model"], row["settings"], seed, path)


@app.command()
def run(
    data: Annotated[Path, typer.Argument(help="Folder that `prepare` wrote.")],
    plan: Annotated[Path, typer.Argument(help="TOML file with the systems.")],
    out: Annotated[Path, typer.Argument(help="JSON file to write.")],
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1,2,3",
    jobs: Annotated[int, typer.Option(help="Cells at a time.")] = 1,
    systems: Annotated[str, typer.Option(help="Only these systems, separated by commas.")] = "",
    cells: Annotated[
        Path | None, typer.Option(help="Folder of finished cells.  [default: beside OUT]")
    ] = None,
    commit: Annotated[str, typer.Option(help="The commit, where there is no checkout to ask.")] = "",
) -> None:
    """Run a plan's missing cells and put them together."""
    from nlpcapsule.experiments.comparison import run_cells, summarise, write_summary
    from nlpcapsule.experiments.provenance import checked_out_commit, experiment_command

    folder = cells or out.with_suffix(".cells")
    chosen = [name for name in systems.split(",") if name]
    run_cells(data, plan, [int(seed) for seed in seeds.split(",")], folder, jobs, chosen)
    write_summary(summarise(folder, experiment_command(), commit or checked_out_commit()), out)


@app.command()
def trecqa(
    data: Annotated[Path, typer.Argument(help="Folder with trecqa/ and vectors/.")],
    plan: Annotated[Path, typer.Argument(help="TOML file with the systems.")],
    out: Annotated[Path, typer.Argument(help="JSON file to write.")],
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1,2,3",
) -> None:
    """Train answer rankers on TREC QA and report on both versions of dev."""
    from nlpcapsule.experiments.comparison import read_plan, write_summary
    from nlpcapsule.experiments.provenance import experiment_command, provenance
    from nlpcapsule.experiments.trecqa import run_trecqa

    systems = {row["name"]: row for row in read_plan(plan)}
    numbers = [int(seed) for seed in seeds.split(",")]
    results, fingerprint = run_trecqa(data, systems, numbers)
    head = provenance(experiment_command(), fingerprint, numbers)
    write_summary({**head, "systems": results}, out)


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
