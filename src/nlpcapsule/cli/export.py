"""`nlpcapsule export`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nlpcapsule.cli.files import check_folder_name, say
from nlpcapsule.cli.options import ModelFolder, Quiet
from nlpcapsule.errors import ConfigError


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
    """Add a label model's network to its folder in a form that predicts faster on a CPU.

    `nlpcapsule predict` then uses it, and starts without torch.
    """
    check_folder_name(model)
    size = export_model(model, int8)
    if not quiet:
        say(f"{size / 2**20:.0f} MiB were added to {model}; `nlpcapsule predict` uses them from now on")


def export_model(folder: Path, int8: bool = False) -> int:
    """Add a label model's network to its folder as ONNX, replacing an earlier export; return the bytes.

    `int8` quantizes it to 8 bits. A model without a network that can be exported is a ConfigError.
    """
    from nlpcapsule.export.onnx_file import write_onnx
    from nlpcapsule.model_folder import add_files, load_model
    from nlpcapsule.model_folder.current import current_place
    from nlpcapsule.model_folder.manifest import ONNX
    from nlpcapsule.scoring.hybrid_scorer import HybridScorer
    from nlpcapsule.scoring.models import LabelModel
    from nlpcapsule.scoring.nominated_scorer import NominatedScorer

    model = load_model(folder, device="cpu")
    if not isinstance(model, LabelModel) or model.network is None:
        raise ConfigError(f"{folder} has no network for labels: only such networks can be exported")
    if isinstance(model.scorer, NominatedScorer):
        raise ConfigError(
            f"{folder} nominates candidates with a second network: expected a hybrid, or a network over all "
            "labels (inference.candidates=0)"
        )
    network, candidates = model.network, isinstance(model.scorer, HybridScorer)
    version = current_place(folder)
    add_files(version, ONNX, lambda place: write_onnx(network, place, candidates=candidates, int8=int8))
    return sum(path.stat().st_size for path in (version / ONNX).iterdir())
