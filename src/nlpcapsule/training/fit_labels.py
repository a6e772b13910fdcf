"""From prepared documents to a trained label model, step by step."""

from __future__ import annotations

from typing import Any

from nlpcapsule.config import Config
from nlpcapsule.config.lexical_settings import LexicalSettings
from nlpcapsule.evaluation.thresholds import best_threshold
from nlpcapsule.model_folder import nominator_config
from nlpcapsule.models.build import build_label_network
from nlpcapsule.ranking.documents import rank_documents
from nlpcapsule.ranking.models import LabelModel
from nlpcapsule.training.fit_lexical import fit_lexical
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder
from nlpcapsule.training.run_folder import RunFolder


def fit_labels(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> LabelModel:
    """Trains a label model and writes its folder.

    Args:
        data: What to train on.
        config: The configuration.
        folder: Where checkpoints and the finished model go.
        progress: Told what happens.
    """
    folder.begin(config, data.fingerprint())
    for note in data.notes:
        progress.say(note)
    if isinstance(config.model, LexicalSettings):
        model = fit_lexical(data, config, folder, progress)
    else:
        model = _fit_network(data, config, folder, progress)
    folder.finish(model)
    return model


def _fit_network(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> LabelModel:
    """A network, and before it the one that nominates candidates, where one is wanted."""
    padding_id, label_count = data.tokenizer.padding_id, len(data.labels)
    wanted = config.inference.candidates
    ranks_candidates = 0 < wanted < label_count
    nominator, train_candidates, dev_candidates = None, None, None
    if ranks_candidates or config.training.negatives == "hard":
        nominator = _train_nominator(data, config, folder, progress)
        width = min(max(wanted, 2 * config.training.negative_count), label_count)
        options: dict[str, Any] = {"padding_id": padding_id, "batch": config.inference.batch}
        if config.training.negatives == "hard":
            train_candidates = rank_documents(nominator, data.train.tokens, width, **options).labels
        if ranks_candidates and data.dev is not None:
            dev_candidates = rank_documents(nominator, data.dev.tokens, wanted, **options).labels
    network = build_label_network(config, data.tokenizer.size, label_count, padding_id, data.vectors)
    task = LabelTask(
        config,
        data.train,
        data.dev,
        data.labels,
        padding_id,
        train_candidates,
        dev_candidates,
        title=config.model.name,
    )
    recorder = Recorder(folder.path, "network", config.training.tensorboard)
    history = train_network(network, task, config.training, folder.checkpoint / "network", progress, recorder)
    facts: dict[str, Any] = {
        "training_documents": len(data.train),
        "data": data.fingerprint(),
        "embedding_size": _embedding_size(data, config),
        "epochs_run": len(history),
        "threshold": 0.5,
    }
    if data.dev is not None:
        rankings = task.rank_dev(network)
        facts["threshold"] = best_threshold(rankings.scores, rankings.labels, list(data.dev.labels))
        facts["dev"] = task.evaluate(rankings, facts["threshold"])
    return LabelModel(
        config, data.tokenizer, data.labels, network, nominator if ranks_candidates else None, facts
    )


def _train_nominator(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> Any:
    """The Kim-CNN that nominates candidates: trained first, on the same documents."""
    beside = nominator_config(config)
    nominator = build_label_network(
        beside, data.tokenizer.size, len(data.labels), data.tokenizer.padding_id, data.vectors
    )
    task = LabelTask(
        beside, data.train, data.dev, data.labels, data.tokenizer.padding_id, title="kim-cnn (nominates)"
    )
    recorder = Recorder(folder.path, "nominator", config.training.tensorboard)
    train_network(nominator, task, beside.training, folder.checkpoint / "nominator", progress, recorder)
    return nominator


def _embedding_size(data: PreparedLabels, config: Config) -> int:
    return config.model.embedding_size if data.vectors is None else data.vectors.shape[1]
