"""Add the exported network of a label model to its folder."""

from __future__ import annotations

from pathlib import Path

from nlpcapsule.errors import ConfigError
from nlpcapsule.export.onnx_file import write_onnx
from nlpcapsule.model_folder.current import current_place
from nlpcapsule.model_folder.loading import load_model
from nlpcapsule.model_folder.manifest import ONNX
from nlpcapsule.model_folder.saving import add_files
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.nominated_scorer import NominatedScorer


def export_model(folder: Path, int8: bool = False) -> int:
    """Export the network of a model folder to ONNX, replacing an earlier export.

    Args:
        folder: The model folder.
        int8: Whether to quantize it to 8 bits.

    Returns:
        The size of the added files, in bytes.

    Raises:
        ConfigError: If the model has no network that can be exported.
        ModelFolderError: If the folder is rejected.
    """
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
