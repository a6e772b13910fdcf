"""Lexical systems: fitted by themselves, or beside a network whose evidence they are joined with."""

from __future__ import annotations

from typing import Any

from nlpcapsule.config import Config
from nlpcapsule.config.lexical_settings import LexicalSettings
from nlpcapsule.lexical.build import evidence_settings, evidence_system, lexical_system
from nlpcapsule.lexical.neighbours import Neighbours
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker
from nlpcapsule.ranking.documents import RANKED
from nlpcapsule.ranking.fusion import Fusion, are_right
from nlpcapsule.ranking.models import LabelModel
from nlpcapsule.training.preparation import tuned_threshold
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def fit_lexical(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> LabelModel:
    """Fits a lexical system; parts that an earlier, stopped run finished are taken from the checkpoint.

    Args:
        data: What to train on.
        config: The configuration; of its `training` section only the seed counts.
        folder: Where checkpoints go.
        progress: Told what happens.
    """
    assert isinstance(config.model, LexicalSettings)
    fitted = _fit_system(config.model, data, config, folder, progress)
    facts: dict[str, Any] = {
        "training_documents": len(data.train),
        "data": data.fingerprint(),
        "threshold": 0.5,
    }
    model = LabelModel(config, data.tokenizer, data.labels, None, None, facts, fitted)
    if data.dev is not None:
        rankings = model.rank_tokens(data.dev.tokens, RANKED)
        facts["threshold"] = tuned_threshold(config, rankings, data.dev)
        facts["dev"] = model.evaluate(data.dev, rankings)
    return model


def fit_evidence(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> LexicalRanker:
    """The lexical system that works beside a network, as `inference.lexical` says."""
    name = evidence_system(config.inference.lexical, len(data.train), len(data.labels))
    progress.say(f"lexical evidence: {name}")
    return _fit_system(evidence_settings(name), data, config, folder, progress)


def learn_fusion(model: LabelModel, data: PreparedLabels) -> Fusion:
    """How what a trained model knows is weighed, from held-out documents."""
    assert data.dev is not None  # held out of the training part where none was given
    candidates, evidence, _ = model.evidence(data.dev.tokens)
    return Fusion.fit(evidence, are_right(candidates, list(data.dev.labels)))


def remember_documents(data: PreparedLabels) -> Neighbours:
    """The training documents as they are searched for those like a new one."""
    ignored = (data.tokenizer.padding_id, data.tokenizer.unknown_id)
    return Neighbours.fit(data.train, len(data.tokenizer.vocabulary), len(data.labels), ignored)


def _fit_system(
    settings: LexicalSettings,
    data: PreparedLabels,
    config: Config,
    folder: RunFolder,
    progress: TrainingProgress,
) -> LexicalRanker:
    checkpoint = folder.checkpoint / "lexical"
    checkpoint.mkdir(parents=True, exist_ok=True)
    progress.start(settings.name, total=1)
    fitting = Fitting(
        words=data.tokenizer.vocabulary,
        label_count=len(data.labels),
        ignored=(data.tokenizer.padding_id, data.tokenizer.unknown_id),
        seed=config.training.seed,
        checkpoint=checkpoint,
        advance=progress.parts,
    )
    return lexical_system(settings).fit(settings, data.train, fitting)
