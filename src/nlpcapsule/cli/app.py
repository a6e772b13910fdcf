"""`nlpcapsule`: the entry point and its error handling."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from nlpcapsule import __version__
from nlpcapsule.cli.compare import compare
from nlpcapsule.cli.demo import demo
from nlpcapsule.cli.evaluate import evaluate
from nlpcapsule.cli.export import export
from nlpcapsule.cli.feedback import feedback
from nlpcapsule.cli.inspect import inspect
from nlpcapsule.cli.labels import labels
from nlpcapsule.cli.learn import learn
from nlpcapsule.cli.predict import predict
from nlpcapsule.cli.serve import serve
from nlpcapsule.cli.systems import systems
from nlpcapsule.cli.train import train
from nlpcapsule.cli.tune import tune
from nlpcapsule.cli.versions import versions
from nlpcapsule.errors import NlpCapsuleError, out_of_memory, printable

# Typer uses click's errors or its built-in copies; this is the UsageError of either.
UsageError: Any = typer.BadParameter.__base__

INTERRUPTED, BROKEN_PIPE = 130, 141  # exit codes, as a shell reports SIGINT and SIGPIPE

app = typer.Typer(
    name="nlpcapsule",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: half as long, never truncated, and brackets are kept
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `nlpcapsule demo`; it needs no data. `nlpcapsule COMMAND --help` explains a command.",
)
for command in (demo, train, evaluate, predict, serve, inspect, export, compare, systems, tune, learn):
    app.command()(command)
for name, group in {"labels": labels, "versions": versions, "feedback": feedback}.items():
    app.add_typer(group, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nlpcapsule {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            "--plugin",
            metavar="FILE.py",
            help="A Python file that registers a system, routing, encoder, loss or format; may be repeated.",
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may also follow the command.")
    ] = False,
) -> None:
    """Train models that tag text with labels out of thousands, or rank answers to questions."""
    from nlpcapsule.plugins import load_plugins

    load_plugins(plugin or ())


def main() -> None:
    """Run a command; errors that the user can fix become one message and exit code 2."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        code = app(arguments, prog_name="nlpcapsule", standalone_mode=False)
        sys.stdout.flush()  # notice a closed reader here, not while Python exits
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except UsageError as error:
        _refuse_usage(error)
    except BrokenPipeError:
        _end_without_reader()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer has caught it
            _end_without_reader()
        raise
    except Exception as error:
        message = _message(error)
        if debug or message is None:
            raise
        _fail(message)
    sys.exit(code)


def _message(error: Exception) -> str | None:
    """Return the message for the user; None for an error that no user can cause."""
    if isinstance(error, NlpCapsuleError):
        return str(error)
    if (told := out_of_memory(error)) is not None:
        return told
    if isinstance(error, OverflowError):
        return f"a number is too large ({error}); lower the settings and options that were given"
    if isinstance(error, UnicodeEncodeError):
        place = ascii(error.object[max(0, error.start - 40) : error.end + 40])
        return f"{place} cannot be written as UTF-8; give the file, folder or label another name"
    return str(error) if isinstance(error, OSError) else None


def _end_without_reader() -> NoReturn:
    """Exit silently, as other programs do when the reader of their output has closed it."""
    _drop_unwritten()
    sys.exit(BROKEN_PIPE)


def _drop_unwritten() -> None:
    """Drop output that cannot be written; Python would try again while exiting, and exit with code 120."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            try:
                stream.flush()  # type: ignore[union-attr]
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]


def _refuse_usage(error: Any) -> NoReturn:
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
        error.show()
        sys.exit(2)
    command = error.ctx.command_path if error.ctx else "nlpcapsule"
    message = error.format_message().replace(": Value error, ", ": ", 1)  # pydantic's prefix
    _fail(f"{message.rstrip('.')} (see `{command} --help`)")


def _fail(message: str) -> NoReturn:
    with suppress(OSError):  # a full disk, or no reader, behind standard error
        typer.secho("error:", fg="red", bold=True, err=True, nl=False)
        typer.echo(f" {printable(message)}", err=True)
    _drop_unwritten()
    sys.exit(2)


if __name__ == "__main__":
    main()
