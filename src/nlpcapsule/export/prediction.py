"""Load a model folder to predict with: the exported network if there is one, without importing torch."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import ValidationError

from nlpcapsule.config import Config
from nlpcapsule.config.settings import InferenceSettings, TextSettings, TrainingSettings
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export.onnx_scorer import OnnxScorer
from nlpcapsule.export.session import has_runtime
from nlpcapsule.model_folder.checks import check_model
from nlpcapsule.model_folder.guarded import load_guarded, read_evidence, read_labels
from nlpcapsule.model_folder.manifest import ONNX, ModelFiles, checked_files, listed_names, model_place
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.fusion import label_frequency
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES, HybridScorer
from nlpcapsule.scoring.models import AnswerModel, LabelModel
from nlpcapsule.scoring.scorer import LabelScorer

GRAPH = f"{ONNX}/network.onnx"


def load_for_prediction(
    folder: str | Path, say: Callable[[str], None] = lambda text: None, exported: bool = True
) -> LabelModel | AnswerModel:
    """Load a model folder to rank texts with, from its exported network if wanted; `say` gets a remark."""
    folder = Path(folder)
    if exported and GRAPH in (listed_names(model_place(folder)) or ()):
        if has_runtime():
            return load_guarded(folder, lambda place: _read(checked_files(place)))
        say("the model's exported network needs onnxruntime: pip install 'nlpcapsule[onnx]'; torch is used")
    from nlpcapsule.model_folder import load_model

    return load_model(folder)


def is_exported(model: LabelModel | AnswerModel) -> bool:
    """Return whether an exported network scores, so that there is none to explain with."""
    if isinstance(model, AnswerModel):
        return False
    scorer = model.scorer.scorer if isinstance(model.scorer, HybridScorer) else model.scorer
    return isinstance(scorer, OnnxScorer)


def _read(files: ModelFiles) -> LabelModel:
    config = _config(files)
    tokenizer = WordTokenizer.from_json(files.text("tokenizer.json"))
    facts = ModelFacts.from_json(files.json("facts.json"))
    labels = read_labels(files)
    network = OnnxScorer.load(files.path(GRAPH), len(labels))
    network.check(tokenizer.size)
    scorer: LabelScorer = network
    evidence = read_evidence(files, facts)
    if evidence is not None:
        lexical, fusion = evidence
        del evidence  # with the tokens, which `learn` alone needs
        lexical = replace(lexical, neighbours=replace(lexical.neighbours, tokens=None))
        count = config.inference.candidates or CANDIDATES
        scorer = HybridScorer(lexical, network, label_frequency(labels.counts), count, fusion)
    files.refuse_unused("network.safetensors", "transformer.json")
    model = LabelModel(config, tokenizer, labels, scorer, facts)
    check_model(model)
    return model


def _config(files: ModelFiles) -> Config:
    """Return the settings that ranking needs; those of the model describe the network, which is exported."""
    record = files.json("config.json")
    try:
        if record["task"] != "labels":
            raise ModelFolderError("config.json: only label models have an exported network")
        text = TextSettings.model_validate(record["text"])
        inference = InferenceSettings.model_validate(record["inference"])
        chosen = record["model"]
        model: Any = SimpleNamespace(name=str(chosen["name"]), lexical=chosen.get("lexical"))
    except (ValidationError, KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(f"config.json: {str(error).splitlines()[0]}") from None
    return Config.model_construct(
        task="labels", text=text, model=model, training=TrainingSettings(), inference=inference
    )
