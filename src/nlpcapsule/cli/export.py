"""`nlpcapsule export`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_folder_name, say
from nlpcapsule.cli.options import ModelFolder, Quiet
from nlpcapsule.threads import use_threads


class Format(StrEnum):
    """Formats that a network can be exported to."""

    ONNX = "onnx"


def export(
    model: Annotated[Path, ModelFolder],
    format: Annotated[
        Format, typer.Option("--format", metavar="NAME", help="onnx: for ONNX Runtime (extra `onnx`).")
    ] = Format.ONNX,
    int8: Annotated[
        bool, typer.Option("--int8", help="Weights of 8 bits: faster and smaller, slightly less exact.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Export a label model's network to ONNX, for speed on a CPU.

    The network is added to the model folder. `predict` and `serve` then use it, and start without torch.
    """
    check_folder_name(model)
    use_threads(None)
    from nlpcapsule.export.export_model import export_model

    size = export_model(model, int8)
    if not quiet:
        say(f"{size / 2**20:.0f} MiB were added to {model}; `predict` and `serve` use them from now on")
