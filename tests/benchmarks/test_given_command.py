"""A results file names the command that wrote it."""

import json
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.speed.given_command import given_command
from benchmarks.speed.predict import facts_of

app, speed = typer.Typer(), typer.Typer()


@app.callback()
def options() -> None:
    """Commands in a group, as those of benchmarks."""


@speed.command()
def measure(
    context: typer.Context,
    data: Annotated[Path, typer.Argument()],
    models: Annotated[list[str], typer.Option("--model")],
    labels: Annotated[int, typer.Option("--labels")] = 4_000,
    bf16: Annotated[bool, typer.Option("--bf16")] = False,
    threads: Annotated[int | None, typer.Option("--threads")] = None,
    preset: Annotated[str, typer.Option("--preset")] = "small",
    warm: Annotated[bool, typer.Option("--warm/--cold")] = True,
    output: Annotated[Path, typer.Option("--output")] = Path("results/x.json"),
) -> None:
    """Print the command."""
    typer.echo(given_command(context))


@speed.command()
def other() -> None:
    """Do something else."""


app.add_typer(speed, name="speed")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("some/where/test.jsonl --model small=a/b/small", "test.jsonl --model small=small"),
        ("t.jsonl --model a=b --preset= --cold", "t.jsonl --model a=b --preset '' --cold"),
        ("t.jsonl --model a=b --model c=/d/e --bf16", "t.jsonl --model a=b --model c=e --bf16"),
        (
            "t.jsonl --model a=b --threads 1 --labels 4000 --output x/y.json",
            "t.jsonl --model a=b --labels 4000 --threads 1",
        ),
    ],
    ids=[
        "paths",
        "an empty value, and no flag",
        "several values and a flag",
        "defaults that were given, without the output",
    ],
)
def test_a_command_is_told_with_the_options_that_it_was_given(words, expected):
    told = CliRunner().invoke(app, ["speed", "measure", *words.split()])
    assert told.stdout.strip() == f"python -m benchmarks speed measure {expected}"


def test_models_are_told_by_what_they_were_trained_on(tmp_path):
    (tmp_path / "facts.json").write_text('{"training_documents": 15449, "data": "2171", "threshold": 0.1}')
    network = {"epochs": 16, "negatives": "hard", "precision": "bf16"}
    (tmp_path / "config.json").write_text(json.dumps({"training": {**network, "seed": 1}}))
    (tmp_path / "manifest.json").write_text("{}")
    found = {"training_documents": 15449, "data": "2171", "manifest": "44136fa3"}
    assert facts_of(tmp_path) == found
    (tmp_path / "network.safetensors").touch()
    assert facts_of(tmp_path) == {**found, **network}
