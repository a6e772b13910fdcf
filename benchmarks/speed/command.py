"""`python -m benchmarks speed`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.atomic_files import write_text

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Speed, as ratios measured in one run.")


@app.callback()
def options() -> None:
    """Speed, as ratios measured in one run."""


@app.command()
def labels(
    counts: Annotated[
        list[int] | None,
        typer.Option("--labels", metavar="NUMBER", min=300, help="Labels; may be repeated, smallest first."),
    ] = None,
    batch_size: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Documents per step.")] = 32,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="small; none: the default network.")
    ] = "small",
    rounds: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Rounds that are timed.")] = 5,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-labels.json"
    ),
) -> None:
    """Time a training step with few labels and with many."""
    from benchmarks.speed.labels import speed_of_labels
    from nlpcapsule.config import Config
    from nlpcapsule.provenance import peak_process_memory, provenance

    chosen = counts or [4_000, 40_000, 400_000]
    settings = {"negatives": "hard", "batch_size": batch_size}
    config = Config.build(overrides=settings, preset=preset or None)
    rows = speed_of_labels(chosen, config, rounds)
    record = {
        **provenance(
            "python -m benchmarks speed labels", batch_size=batch_size, preset=preset, rounds=rounds
        ),
        "rows": rows,
        "memory_mib": round(peak_process_memory() / 2**20),
    }
    write_text(output, json.dumps(record, indent=2) + "\n")
    for row in rows:
        typer.echo(
            f"{row['labels']:9,} labels  {row['milliseconds']:8.1f} ms/step ({row['ratio']:5.2f}x)  "
            f"tables updated {row['updated']}"
        )
