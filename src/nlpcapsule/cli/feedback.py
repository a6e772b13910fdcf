"""`nlpcapsule feedback`: the store of accepted and rejected labels."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.atomic_files import atomic_text
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.learning.store import FeedbackStore

feedback = typer.Typer(no_args_is_help=True, help="Export, erase or count collected feedback.")

Store = Annotated[
    Path, typer.Argument(metavar="STORE", help="Feedback store, as `nlpcapsule serve` writes it.")
]


@feedback.command("export")
def export(
    store: Store,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE.jsonl", help="File to write; standard output if left out."),
    ] = None,
) -> None:
    """Write all feedback as JSON Lines, which `nlpcapsule learn` reads.

    A row has the accepted labels in `labels` and the rejected ones in `rejected`.
    """
    with FeedbackStore(store, must_exist=True) as opened:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in opened.export())
        if output is None:
            sys.stdout.buffer.writelines(line.encode() for line in lines)
            sys.stdout.buffer.flush()
        elif output.exists() and output.samefile(store):
            raise NlpCapsuleError(f"--output {output} is the store itself: name another file")
        else:
            with atomic_text(output) as file:
                file.writelines(lines)


@feedback.command("erase")
def erase(
    store: Store,
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="Erase the feedback about this document.")
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="Erase the feedback of this person.")
    ] = None,
) -> None:
    """Erase the feedback about a document, of a person, or of a person about a document.

    The rows are overwritten in the file. Models that have learned from them are not changed.
    """
    with FeedbackStore(store, must_exist=True) as opened:
        removed = opened.erase(document, person)
    typer.echo(f"{removed:,} rows erased")


@feedback.command("stats")
def stats(store: Store) -> None:
    """Print how many rows, documents, people and decisions there are, as JSON."""
    with FeedbackStore(store, must_exist=True) as opened:
        typer.echo(json.dumps(opened.counts(), indent=2))
