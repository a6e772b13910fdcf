"""`python -m benchmarks speed`: how time and memory grow with documents, tokens and processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from benchmarks.speed.given_command import given_command
from nlpcapsule.atomic_files import write_text
from nlpcapsule.cli.options import Device, Threads, choose_device
from nlpcapsule.threads import use_threads

ChosenDevice = Annotated[
    Device, typer.Option("--device", metavar="NAME", help="Device to train on: auto, cpu or cuda.")
]
BatchSize = Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Documents per step.")]
Output = Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")]
Folder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where data and models go for the time being.")
]


def add_growth_commands(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (tokens, routing, neighbours, memory, processes, plots):
        app.command()(command)


def tokens(
    context: typer.Context,
    counts: Annotated[
        list[int] | None,
        typer.Option("--tokens", metavar="NUMBER", min=10, help="Tokens; may be repeated, smallest first."),
    ] = None,
    batch_size: BatchSize = 8,
    device: ChosenDevice = "auto",
    threads: Threads = None,
    rounds: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Rounds that are timed.")] = 3,
    output: Output = Path("results/speed-tokens.json"),
) -> None:
    """Time a training step (small preset) with short texts and with long ones."""
    use_threads(threads)
    choose_device(device)
    from benchmarks.speed.steps import speed_of_steps
    from nlpcapsule.config import Config

    config = Config.build(overrides={"negatives": "hard", "batch_size": batch_size}, preset="small")
    points = [(4_000, count) for count in counts or [100, 250, 500, 1_000, 2_000]]
    rows = speed_of_steps(points, config, rounds)
    _record(context, output, rows, batch_size=batch_size, rounds=rounds)
    for row in rows:
        typer.echo(
            f"{row['tokens']:6,} tokens  {row['milliseconds']:8.1f} ms/step ({row['ratio']:5.2f}x, "
            f"CPU {row['cpu_ratio']:5.2f}x)  "
            f"{row['peak_memory_mib']:,} MiB"
        )


def routing(
    context: typer.Context,
    labels: Annotated[int, typer.Option(metavar="NUMBER", min=300, help="Labels in all.")] = 4_000,
    length: Annotated[
        int, typer.Option("--tokens", metavar="NUMBER", min=10, help="Tokens of a document.")
    ] = 500,
    batch_size: BatchSize = 64,
    bf16: Annotated[bool, typer.Option("--bf16", help="Compute in bf16.")] = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the networks.")] = False,
    device: ChosenDevice = "auto",
    threads: Threads = None,
    rounds: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Rounds that are timed.")] = 3,
    output: Output = Path("results/speed-routing.json"),
) -> None:
    """Time a training step of capsule networks against that of convolutional networks."""
    choose_device(device)
    used = use_threads(threads)
    from benchmarks.speed.routing import Batches, speed_of_routing

    rows = speed_of_routing(Batches(batch_size, length, labels), bf16, compiled, rounds)
    more = {"labels": labels, "tokens": length, "batch_size": batch_size, "bf16": bf16, "compiled": compiled}
    _record(context, output, rows, **more, rounds=rounds, threads=used)
    for row in rows:
        times = (
            f"{kind} {row[f'{kind}_milliseconds']:7.2f} ms/step, {row[f'{kind}_ratio']:5.2f}x "
            for kind in ("launched", "recorded")
            if f"{kind}_ratio" in row
        )
        typer.echo(
            f"{row['system']:32} {' '.join(times)} {row['reference'] or 'itself'}  "
            f"{row['peak_memory_mib']:,} MiB"
        )


def neighbours(
    context: typer.Context,
    count: Annotated[int, typer.Option("--documents", metavar="NUMBER", min=100)] = 500_000,
    asked: Annotated[
        int, typer.Option("--asked", metavar="NUMBER", min=1, help="Documents to look up.")
    ] = 1_000,
    threads: Threads = None,
    output: Output = Path("results/speed-neighbours.json"),
) -> None:
    """Search similar documents among generated ones, through the index and by comparing all."""
    use_threads(threads)
    from benchmarks.generated import GeneratedLabels
    from benchmarks.speed.neighbours import speed_of_neighbours
    from benchmarks.speed.usage import Usage

    data, usage = GeneratedLabels(documents=count), Usage(os.getpid())
    rows = speed_of_neighbours(data, asked)
    more = {"documents": count, "asked": asked, "seed": data.seed, "machine": usage.stop()}
    _record(context, output, rows, **more)
    for row in rows:
        typer.echo(
            f"{row['system']:14} {row['milliseconds']:6.2f} ms/document (CPU {row['cpu_milliseconds']:.2f})  "
            f"P@1 {100 * row['precision_at_1']:.2f}  the same nearest {row['same_nearest']:.1%}"
        )


def memory(
    context: typer.Context,
    counts: Annotated[
        list[int] | None,
        typer.Option("--documents", metavar="NUMBER", min=100, help="May be repeated, smallest first."),
    ] = None,
    threads: Threads = None,
    folder: Folder = None,
    output: Output = Path("results/speed-memory.json"),
) -> None:
    """Measure the peak memory of training a hybrid on few and on many generated documents."""
    use_threads(threads)
    from benchmarks.speed.memory import memory_of_training

    with TemporaryDirectory(prefix="speed-", dir=folder) as place:
        rows = memory_of_training(counts or [50_000, 500_000], Path(place))
    _record(context, output, rows)
    for row in rows:
        typer.echo(
            f"{row['documents']:9,} documents  {row['peak_memory_mib']:,} MiB ({row['ratio']:.2f}x)  "
            f"{row['peak_memory_mib_of_stages']}"
        )


def processes(
    context: typer.Context,
    counts: Annotated[
        list[int] | None,
        typer.Option("--processes", metavar="NUMBER", min=1, help="May be repeated, smallest first."),
    ] = None,
    output: Output = Path("results/speed-processes.json"),
) -> None:
    """Time an epoch of torchrun with one process and with two."""
    from benchmarks.speed.processes import speed_of_processes

    with TemporaryDirectory(prefix="speed-") as place:
        rows = speed_of_processes(counts or [1, 2], Path(place))
    _record(context, output, rows)
    for row in rows:
        typer.echo(
            f"{row['processes']} process(es)  {row['seconds']:.1f} s an epoch ({row['speedup']:.2f}x)  "
            f"loss {row['loss']:.5f}  {row['peak_memory_mib']:,} MiB"
        )


def plots(
    results: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of results.")] = Path("results"),
) -> None:
    """Draw how time and memory grow, from the results of the other commands."""
    from benchmarks.speed.growth_plots import growth_plots

    for name, text in growth_plots(results).items():
        write_text(results / name, text)
        typer.echo(f"{results / name}")


def _record(context: typer.Context, output: Path, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    from nlpcapsule.provenance import provenance

    record = {**provenance(given_command(context), **more), "rows": rows}
    write_text(output, json.dumps(record, indent=2) + "\n")
