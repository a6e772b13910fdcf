"""`python -m benchmarks speed`."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmarks.speed.given_command import given_command
from benchmarks.speed.growth_command import BatchSize, ChosenDevice, add_growth_commands
from nlpcapsule.atomic_files import write_text
from nlpcapsule.cli.options import Threads, choose_device
from nlpcapsule.errors import ConfigError
from nlpcapsule.threads import use_threads

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Speed, as ratios measured in one run.")


@app.callback()
def options() -> None:
    """Speed, as ratios measured in one run."""


@app.command()
def predict(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Labelled documents to rank.")],
    omikuji: Annotated[
        Path, typer.Option("--omikuji", metavar="MODEL", help="A trained Omikuji: the reference.")
    ],
    models: Annotated[
        list[str],
        typer.Option("--model", metavar="NAME=MODEL", help="A model with a network; may be repeated."),
    ],
    documents: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Documents to rank for P@1.  [default: all]")
    ] = None,
    timed: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Documents to time.")] = 500,
    rounds: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Rounds that are timed.")] = 5,
    threads: Threads = None,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-predict.json"
    ),
) -> None:
    """Time raw text → labels against Omikuji: in torch, exported to ONNX, and exported to 8 bits."""
    used = use_threads(threads)
    named = dict(_named(text) for text in models)
    from benchmarks.speed.predict import facts_of, fingerprint, speed_of_prediction
    from nlpcapsule.data.readers.document_files import read_documents
    from nlpcapsule.provenance import provenance

    chosen = list(islice(read_documents(data), documents))
    with TemporaryDirectory(prefix="speed-") as folder:
        one = Path(folder) / "one.jsonl"
        write_text(one, json.dumps({"text": chosen[0].text}) + "\n")
        rows = speed_of_prediction(omikuji, named, chosen, timed, one, Path(folder), rounds)
    trained = {name: facts_of(place) for name, place in {"omikuji": omikuji, **named}.items()}
    record = {
        **provenance(
            given_command(context),
            data=f"{data.name}-{fingerprint(data)}",
            models=trained,
            documents=len(chosen),
            timed=min(timed, len(chosen)),
            rounds=rounds,
            threads=used,
        ),
        "rows": [row.to_json() for row in rows],
    }
    write_text(output, json.dumps(record, indent=2) + "\n")
    for row in rows:
        typer.echo(
            f"{row.system:24} {row.milliseconds:7.2f} ms/document ({row.ratio:5.2f}x, "
            f"CPU {row.cpu_ratio:5.2f}x)"
            f"  request {row.request_milliseconds:7.2f} ms ({row.request_ratio:5.2f}x)"
            f"  process {row.process_cpu_seconds:5.2f} s {row.process_memory_mib:5.0f} MiB"
            f"  P@1 {100 * row.precision_at_1:5.2f}"
        )


Parts = Annotated[
    Path, typer.Argument(metavar="DATA", help="Folder of train, dev and test files; `export` writes one.")
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of all trainings.")
]
Trainings = Annotated[
    int, typer.Option("--rounds", metavar="NUMBER", min=1, help="Trainings of each, with seeds from 1.")
]


@app.command()
def train(
    context: typer.Context,
    data: Parts,
    earlier: Annotated[
        Path, typer.Option(metavar="CHECKOUT", help="A checkout of an earlier commit: the reference.")
    ],
    settings: Changes = None,
    rounds: Trainings = 2,
    threads: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Threads of each.")] = 1,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-train.json"
    ),
) -> None:
    """Train the small preset from raw text, with an earlier commit and with this one, in turn."""
    from benchmarks.speed.train import HERE, Checkout, TrainingData, compare_trainings

    parts, before = TrainingData(data, settings or []), Checkout(earlier)
    found = compare_trainings(
        given_command(context),
        parts,
        partial(before.train, parts, threads),
        partial(HERE.train, parts, threads),
        rounds,
        output,
        typer.echo,
    )
    typer.echo(
        f"training takes {found['cpu_ratio']:.2f}x the CPU time ({found['ratio']:.2f}x on the clock) "
        f"and loses {found['lost_points']:.2f} points of P@1"
    )


@app.command()
def busy(
    context: typer.Context,
    data: Parts,
    settings: Changes = None,
    rounds: Trainings = 2,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-busy.json"
    ),
) -> None:
    """Train the small preset alone, and next to a process that keeps a core busy, in turn."""
    from benchmarks.speed.train import HERE, TrainingData, compare_trainings, next_to_busy_process

    parts = TrainingData(data, settings or [])
    found = compare_trainings(
        given_command(context),
        parts,
        partial(HERE.train, parts, None),
        next_to_busy_process(partial(HERE.train, parts, None)),
        rounds,
        output,
        typer.echo,
    )
    typer.echo(f"next to a busy process, training takes {found['ratio']:.2f}x its time alone")


@app.command()
def labels(
    context: typer.Context,
    counts: Annotated[
        list[int] | None,
        typer.Option("--labels", metavar="NUMBER", min=300, help="Labels; may be repeated, smallest first."),
    ] = None,
    batch_size: BatchSize = 32,
    device: ChosenDevice = "auto",
    threads: Threads = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="small; none: the default network.")
    ] = "small",
    rounds: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Rounds that are timed.")] = 5,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-labels.json"
    ),
) -> None:
    """Time a training step with few labels and with many."""
    use_threads(threads)
    from benchmarks.speed.steps import TOKENS, speed_of_steps
    from nlpcapsule.config import Config
    from nlpcapsule.provenance import provenance

    choose_device(device)
    chosen = counts or [4_000, 40_000, 400_000]
    settings = {"negatives": "hard", "batch_size": batch_size}
    config = Config.build(overrides=settings, preset=preset or None)
    rows = speed_of_steps([(count, TOKENS) for count in chosen], config, rounds)
    record = {
        **provenance(given_command(context), batch_size=batch_size, preset=preset, rounds=rounds),
        "rows": rows,
    }
    write_text(output, json.dumps(record, indent=2) + "\n")
    for row in rows:
        typer.echo(
            f"{row['labels']:9,} labels  {row['milliseconds']:8.1f} ms/step ({row['ratio']:5.2f}x, "
            f"CPU {row['cpu_ratio']:5.2f}x)  "
            f"{row['peak_memory_mib']:,} MiB  tables updated {row['updated']}"
        )


@app.command()
def documents(
    context: typer.Context,
    count: Annotated[int, typer.Option("--documents", metavar="NUMBER", min=100)] = 60_000,
    labels: Annotated[int, typer.Option("--labels", metavar="NUMBER", min=10)] = 50_000,
    epochs: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Passes over the documents.")] = 1,
    batch_size: BatchSize = 32,
    device: ChosenDevice = "auto",
    threads: Threads = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep data and model here; the same command resumes if it was stopped."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(metavar="FILE.json", help="Results file.")] = Path(
        "results/speed-documents.json"
    ),
) -> None:
    """Nominate candidates and train (small preset) on generated data with many labels."""
    use_threads(threads)
    from benchmarks.generated import GeneratedLabels
    from benchmarks.speed.documents import TrainingOptions, cost_of_training
    from nlpcapsule.provenance import provenance

    data = GeneratedLabels(labels=labels, documents=count)
    options = TrainingOptions(epochs, device, batch_size)
    with TemporaryDirectory(prefix="speed-") as place:
        kept = folder or Path(place)
        kept.mkdir(parents=True, exist_ok=True)
        cost = cost_of_training(data, kept, options)
    record = {**provenance(given_command(context), documents=count, seed=data.seed), **cost.to_json()}
    write_text(output, json.dumps(record, indent=2) + "\n")
    typer.echo(
        f"{cost.labels:,} labels, {count:,} documents: candidates {cost.candidates_seconds:.0f} s, "
        f"first epoch {cost.epoch_seconds:.0f} s, all {cost.training_seconds:.0f} s, "
        f"CPU {cost.cpu_seconds:.0f} s on {cost.machine['cores_used']} of {cost.machine['cores']} cores, "
        f"{cost.peak_memory_gib:.2f} GiB, "
        f"recall@200 {cost.candidate_recall:.3f} (ceiling {cost.recall_ceiling:.3f}), "
        f"P@1 {cost.precision_at_1:.3f} (lexical system alone {cost.lexical_precision_at_1:.3f}, "
        f"ceiling {cost.precision_ceiling:.3f})"
    )


def _named(text: str) -> tuple[str, Path]:
    name, equals, place = text.partition("=")
    if not equals or not name or " " in name:
        raise ConfigError(f"--model {text!r}: expected NAME=MODEL, such as small=my-model")
    return name, Path(place)


add_growth_commands(app)
