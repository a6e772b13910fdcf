"""From documents to a fitted lexical system."""

from __future__ import annotations

from typing import Any

from nlpcapsule.config import Config
from nlpcapsule.config.lexical_settings import LexicalSettings
from nlpcapsule.evaluation.thresholds import best_threshold
from nlpcapsule.lexical.build import lexical_system
from nlpcapsule.lexical.ranker import Fitting
from nlpcapsule.ranking.documents import RANKED
from nlpcapsule.ranking.models import LabelModel
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
    checkpoint = folder.checkpoint / "lexical"
    checkpoint.mkdir(parents=True, exist_ok=True)
    progress.start(config.model.name, total=1)
    fitting = Fitting(
        words=data.tokenizer.vocabulary,
        label_count=len(data.labels),
        ignored=(data.tokenizer.padding_id, data.tokenizer.unknown_id),
        seed=config.training.seed,
        checkpoint=checkpoint,
        advance=progress.parts,
    )
    fitted = lexical_system(config.model).fit(config.model, data.train, fitting)
    facts: dict[str, Any] = {
        "training_documents": len(data.train),
        "data": data.fingerprint(),
        "threshold": 0.5,
    }
    model = LabelModel(config, data.tokenizer, data.labels, None, None, facts, fitted)
    if data.dev is not None:
        rankings = model.rank_tokens(data.dev.tokens, RANKED)
        facts["threshold"] = best_threshold(rankings.scores, rankings.labels, list(data.dev.labels))
        facts["dev"] = model.evaluate(data.dev, rankings)
    return model
