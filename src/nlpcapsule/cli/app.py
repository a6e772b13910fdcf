"""`nlpcapsule`: the entry point, and what happens to errors."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from nlpcapsule import __version__
from nlpcapsule.cli import demo, evaluate, inspect, predict, train
from nlpcapsule.errors import NlpCapsuleError

app = typer.Typer(
    name="nlpcapsule",
    help="Capsule networks that tag text with thousands of labels and pick the best answer to a question.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("inspect")(inspect.inspect)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nlpcapsule {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Capsule networks that tag text with thousands of labels and pick the best answer to a question."""


def main() -> None:
    """Runs a command; what the user can mend is one message and exit code 2."""
    try:
        app()
    except NlpCapsuleError as error:
        if "--debug" in sys.argv:
            raise
        Console(stderr=True, soft_wrap=True).print(
            f"[bold red]error:[/] {_escaped(str(error))}", highlight=False
        )
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("stopped; nothing finished is lost. `train` goes on with --resume.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        sys.exit(141)


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


if __name__ == "__main__":
    main()
