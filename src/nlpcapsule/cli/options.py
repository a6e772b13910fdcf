"""Options that several commands share."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from nlpcapsule.data.readers.formats import DOCUMENT_FORMATS, QUESTION_FORMATS
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import ConfigError

Command = Callable[..., None]

ModelFolder = typer.Argument(metavar="MODEL", help="Folder that `nlpcapsule train` wrote.")
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="NUMBER",
        min=1,
        help="Threads, and processes of a lexical system.  [default: as many as the machine grants; training "
        "and evaluation use fewer where that is faster]",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")]

Device = Literal["auto", "cpu", "cuda"]  # auto takes a GPU where there is one

FORMATS = ", ".join(dict.fromkeys([*DOCUMENT_FORMATS, *QUESTION_FORMATS]))


def _option(help: str, metavar: str = "NAME", kind: Any = str) -> Any:
    return Annotated[kind, typer.Option(metavar=metavar, help=help)]


# One entry per field of `ReadOptions` that a user may choose.
READ_OPTIONS: dict[str, Any] = {
    "format": _option(f"{FORMATS}; auto decides by file name and content."),
    "text_key": _option("JSON key or column of the text."),
    "labels_key": _option("JSON key or column of the labels."),
    "id_key": _option("JSON key or column of the identifier."),
    "title_key": _option("JSON key or column of the title."),
    "label_separator": _option(
        "Separator of labels inside a CSV or TSV cell.  [default: ;]", "TEXT", str | None
    ),
    "split": _option("Part of a data set that has several: train, dev, test, all.", "PART", str | None),
    "skip_bad_rows": Annotated[
        bool, typer.Option("--skip-bad-rows", help="Skip rows that cannot be read, and report how many.")
    ],
}
ABOUT_LABELS = ("labels_key", "label_separator")


def reads_data(need_labels: bool) -> Callable[[Command], Command]:
    """Add the readers' options to a command, which receives them as one argument, `reading`.

    Typer makes an option of each parameter in a signature, so the command's signature gets those of
    `READ_OPTIONS` in place of `reading`; those about labels only if labels are needed.
    """
    names = [name for name in READ_OPTIONS if need_labels or name not in ABOUT_LABELS]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(name, kind, default=getattr(ReadOptions, name), annotation=READ_OPTIONS[name])
        for name in names
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_read_options(**values: Any) -> None:
            chosen = {name: values.pop(name) for name in names}
            command(**values, reading=ReadOptions(**chosen, need_labels=need_labels))

        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
        shown = signature.replace(parameters=[*own, *added])
        with_read_options.__signature__ = shown  # type: ignore[attr-defined]
        with_read_options.__annotations__ = {p.name: p.annotation for p in shown.parameters.values()}
        return with_read_options

    return decorate


def choose_device(device: Device) -> None:
    """Make the rest of this process compute on a device; one that is not there is a ConfigError."""
    if device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    elif device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ConfigError("--device cuda: torch finds no GPU; give --device cpu, or leave it out")
