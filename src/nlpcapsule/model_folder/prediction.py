"""Load a model folder to predict with: the exported network if there is one, without importing torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from nlpcapsule.config import Config
from nlpcapsule.config.settings import InferenceSettings, TextSettings, TrainingSettings
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export.onnx_scorer import OnnxScorer, has_runtime
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.model_folder.checks import check_label_rows, check_model
from nlpcapsule.model_folder.guarded import load_guarded
from nlpcapsule.model_folder.manifest import (
    FUSION,
    LEXICAL,
    ONNX,
    ModelFiles,
    checked_files,
    listed_names,
    model_place,
)
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.fusion import Fusion, label_frequency
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES, HybridParts, HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.scorer import LabelScorer

if TYPE_CHECKING:
    from nlpcapsule.scoring.models import AnswerModel

GRAPH = f"{ONNX}/network.onnx"


def load_for_prediction(
    folder: str | Path, say: Callable[[str], None] = lambda text: None
) -> LabelModel | AnswerModel:
    """Load a model folder to rank texts with.

    Args:
        folder: The folder.
        say: Called with a remark for the user.

    Raises:
        ModelFolderError: If the folder is rejected.
        MissingExtraError: If the model needs an optional dependency.
    """
    folder = Path(folder)
    if GRAPH in (listed_names(model_place(folder)) or ()):
        if has_runtime():
            return load_guarded(folder, lambda place: _read(checked_files(place)), check_model)
        say("the model's exported network needs onnxruntime: pip install 'nlpcapsule[onnx]'; torch is used")
    from nlpcapsule.model_folder.loading import load_model

    return load_model(folder)


def _read(files: ModelFiles) -> LabelModel:
    config = _config(files)
    tokenizer = WordTokenizer.from_json(files.text("tokenizer.json"))
    facts = ModelFacts.from_json(files.json("facts.json"))
    check_label_rows(files.json("labels.json"))
    labels = LabelVocabulary.from_json(files.text("labels.json"))
    network = OnnxScorer.load(files.path(GRAPH), len(labels))
    scorer: LabelScorer = network
    lexical_files: set[str] = set()
    if (FUSION in files) != (facts.lexical is not None):
        raise ModelFolderError(f"{FUSION} and the lexical system that facts.json names do not come together")
    if facts.lexical is not None:
        fusion = Fusion.from_json(files.json(FUSION))
        lexical = FittedEvidence.load(facts.lexical, files.folder / LEXICAL)
        lexical_files = lexical.files
        count = config.inference.candidates or CANDIDATES
        scorer = HybridScorer(HybridParts(lexical, network, label_frequency(labels.counts), count), fusion)
    files.refuse_unused(lexical_files, ("network.safetensors", "transformer.json"))
    return LabelModel(config, tokenizer, labels, scorer, facts)


def _config(files: ModelFiles) -> Config:
    """Return the settings that ranking needs; those of the model describe the network, which is exported."""
    record = files.json("config.json")
    try:
        if record["task"] != "labels":
            raise ModelFolderError("config.json: only label models have an exported network")
        text = TextSettings.model_validate(record["text"])
        inference = InferenceSettings.model_validate(record["inference"])
        model: Any = SimpleNamespace(lexical=record["model"].get("lexical"))
    except (ValidationError, KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(f"config.json: {str(error).splitlines()[0]}") from None
    return Config.model_construct(
        task="labels", text=text, model=model, training=TrainingSettings(), inference=inference
    )
