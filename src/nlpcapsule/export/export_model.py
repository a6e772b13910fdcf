"""Add the exported network of a label model to its folder."""

from pathlib import Path

from nlpcapsule.errors import ConfigError
from nlpcapsule.export.onnx_file import write_onnx
from nlpcapsule.model_folder import add_files, load_model
from nlpcapsule.model_folder.current import current_place
from nlpcapsule.model_folder.manifest import ONNX
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.nominated_scorer import NominatedScorer


def export_model(folder: Path, int8: bool = False) -> int:
    """Add a label model's network to its folder as ONNX, replacing an earlier export; return the bytes.

    `int8` quantizes it to 8 bits. A model without a network that can be exported is a ConfigError.
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
