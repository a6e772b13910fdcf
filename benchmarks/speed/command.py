"""`python -m benchmarks speed`."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from nlpcapsule.atomic_files import write_text

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Speed, as ratios measured in one run.")


@app.callback()
def options() -> None:
    """Speed, as ratios measured in one run."""


@app.command()
def documents(
    count: Annotated[int, typer.Option("--documents", metavar="NUMBER", min=100)] = 60_000,
    labels: Annotated[int, typer.Option("--labels", metavar="NUMBER", min=10)] = 60_000,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-documents.json"
    ),
) -> None:
    """Nominate candidates and train one epoch (small preset) on generated data with many labels."""
    from benchmarks.generated import GeneratedLabels
    from benchmarks.speed.documents import cost_of_training
    from nlpcapsule.provenance import provenance

    with TemporaryDirectory(prefix="speed-") as folder:
        cost = cost_of_training(GeneratedLabels(labels=labels, documents=count), Path(folder))
    command = f"python -m benchmarks speed documents --documents {count} --labels {labels}"
    record = {**provenance(command, documents=count), **cost.to_json()}
    write_text(output, json.dumps(record, indent=2) + "\n")
    typer.echo(
        f"{cost.labels:,} labels, {count:,} documents: candidates {cost.candidates_seconds:.0f} s, "
        f"epoch {cost.epoch_seconds:.0f} s, CPU {cost.cpu_seconds:.0f} s, {cost.peak_memory_gib:.2f} GiB, "
        f"recall@200 {cost.candidate_recall:.3f} (ceiling {cost.recall_ceiling:.3f}), "
        f"P@1 {cost.precision_at_1:.3f}"
    )
