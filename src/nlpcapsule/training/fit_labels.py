"""From documents to a trained label model, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nlpcapsule.config import Config
from nlpcapsule.dataset.encoded import EncodedDocuments, encode_documents
from nlpcapsule.dataset.labels import LabelVocabulary
from nlpcapsule.dataset.near_duplicates import find_near_duplicates
from nlpcapsule.evaluation.thresholds import best_threshold
from nlpcapsule.model_folder import nominator_config
from nlpcapsule.models.build import build_label_network
from nlpcapsule.ranking.documents import rank_documents
from nlpcapsule.ranking.models import LabelModel
from nlpcapsule.text.documents import Document
from nlpcapsule.text.tokens import WordTokenizer
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.preparation import hold_out, starting_vectors
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder
from nlpcapsule.training.run_folder import RunFolder


@dataclass(frozen=True)
class PreparedLabels:
    """Documents ready to be trained on: all a run needs, and nothing of the text itself.

    Attributes:
        tokenizer: Trained on the training part alone, or given.
        labels: The labels of the training part.
        train: Training documents.
        dev: Held-out documents, or None.
        vectors: (V, v) word vectors to start from, or None.
        notes: What was noticed on the way, for the person who trains.
    """

    tokenizer: WordTokenizer
    labels: LabelVocabulary
    train: EncodedDocuments
    dev: EncodedDocuments | None
    vectors: np.ndarray | None
    notes: tuple[str, ...] = ()

    def fingerprint(self) -> str:
        """Tells two data sets apart."""
        return self.train.fingerprint() + ("" if self.dev is None else "-" + self.dev.fingerprint())


def prepare_labels(
    train: Iterable[Document], dev: Iterable[Document] | None, config: Config
) -> PreparedLabels:
    """Tokenises documents and collects their labels.

    Args:
        train: Training documents; gone through twice, so a list or a re-readable file, not a generator.
        dev: Held-out documents.
        config: The configuration.
    """
    if dev is None and config.training.dev_fraction:
        train, dev = hold_out(list(train), config.training.dev_fraction, config.training.seed)
    label_rows: list[tuple[str, ...]] = []

    def texts() -> Iterator[str]:
        for document in train:
            label_rows.append(document.labels)
            yield document.text

    if config.text.tokenizer:
        tokenizer = WordTokenizer.from_file(config.text.tokenizer)
        label_rows = [document.labels for document in train]
    else:
        tokenizer = WordTokenizer.train(texts(), config.text.vocabulary_size, config.text.min_count)
    labels = LabelVocabulary.from_labels(label_rows)
    length = config.text.max_tokens
    encoded = encode_documents(train, tokenizer, labels, length)
    held_out = None if dev is None else encode_documents(dev, tokenizer, labels, length)
    notes = _notes(encoded, held_out, labels, tokenizer)
    vectors = starting_vectors(config, tokenizer, notes)
    return PreparedLabels(tokenizer, labels, encoded, held_out, vectors, tuple(notes))


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
    model = LabelModel(
        config, data.tokenizer, data.labels, network, nominator if ranks_candidates else None, facts
    )
    folder.finish(model)
    return model


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


def _notes(
    train: EncodedDocuments, dev: EncodedDocuments | None, labels: LabelVocabulary, tokenizer: WordTokenizer
) -> list[str]:
    unlabelled = int((train.labels.lengths == 0).sum())
    notes = [
        f"{len(train):,} training documents ({unlabelled:,} without labels), {len(labels):,} labels, "
        f"{tokenizer.size:,} words"
    ]
    if dev is not None:
        unseen = int((dev.labels.values >= len(labels)).sum())
        twins = find_near_duplicates(train.tokens, dev.tokens).dev_documents
        notes.append(
            f"{len(dev):,} dev documents; {unseen:,} of their {len(dev.labels.values):,} labels are unknown "
            f"to training; {twins:,} documents have a near-duplicate in training"
        )
    return notes
