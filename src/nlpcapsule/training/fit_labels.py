"""From prepared documents to a trained label model, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from accelerate import PartialState
from torch import nn

from nlpcapsule.baselines.embedding_linear import EmbeddingLinear
from nlpcapsule.config import Config
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.encoders.word_embedding import embedding_size
from nlpcapsule.errors import DataError
from nlpcapsule.lexical.build import evidence_system
from nlpcapsule.lexical.evidence import WordEvidence
from nlpcapsule.lexical.ranker import LexicalSettings
from nlpcapsule.model_folder import nominator_config
from nlpcapsule.networks.build import build_label_network
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.networks.paper import PaperNetwork
from nlpcapsule.scoring.documents import RANKED, rank_documents
from nlpcapsule.scoring.models import CANDIDATES, LabelModel
from nlpcapsule.training.embedded_documents import embed_documents
from nlpcapsule.training.fit_lexical import fit_evidence, fit_lexical, learn_fusion
from nlpcapsule.training.label_task import LabelTask, selector_of
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.preparation import tuned_threshold
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder
from nlpcapsule.training.run_folder import RunFolder


def fit_labels(
    data: PreparedLabels,
    config: Config,
    folder: RunFolder,
    progress: TrainingProgress,
    words: WordEvidence | None = None,
    nominator: nn.Module | None = None,
) -> LabelModel:
    """Trains a label model and writes its folder.

    Args:
        data: What to train on.
        config: The configuration.
        folder: Where checkpoints and the finished model go.
        progress: Told what happens.
        words: What is known from the words, where that has been found out before; None finds it out where
            `inference.lexical` asks for it.
        nominator: A trained Kim-CNN, as `train_nominator` returns it; None trains one where it is needed.
    """
    folder.begin(config, data.fingerprint())
    for note in data.notes:
        progress.say(note)
    if isinstance(config.model, LexicalSettings):
        model = fit_lexical(data, config, folder, progress)
    else:
        model = _fit_network(data, config, folder, progress, words, nominator)
    folder.finish(model)
    return model


def _fit_network(
    data: PreparedLabels,
    config: Config,
    folder: RunFolder,
    progress: TrainingProgress,
    words: WordEvidence | None,
    nominator: nn.Module | None,
) -> LabelModel:
    """A network, and before it what nominates candidates, where that is wanted."""
    padding_id, label_count = data.tokenizer.padding_id, len(data.labels)
    # First all that can be refused: it is to be heard of now, and not once the words are learned.
    selector_of(config)
    network = build_label_network(config, data.tokenizer.size, label_count, padding_id, data.vectors)
    recorder = Recorder(folder.path, "network", config.training.tensorboard)
    if words is None and config.inference.lexical != "none" and data.dev is not None:
        words = fit_evidence(data, config, folder, progress)
    if words is None and data.thesaurus is not None:
        config = _without_nominations(config, progress)
    wanted = config.inference.candidates or (0 if words is None else CANDIDATES)
    ranks_candidates = words is not None or 0 < wanted < label_count
    train_candidates, dev_candidates = None, None
    if words is None and nominator is None and needs_nominator(config, label_count):
        nominator = train_nominator(data, config, folder, progress)

    def nominate(tokens: Ragged, count: int) -> np.ndarray:
        if words is not None:
            return words.top(tokens, count)[0]
        assert nominator is not None
        return rank_documents(
            nominator, tokens, count, padding_id=padding_id, batch=config.inference.batch
        ).labels

    if config.training.negatives == "hard":
        width = min(max(wanted, 2 * config.training.negative_count), label_count)
        train_candidates = nominate(data.train.tokens, width)
    if ranks_candidates and data.dev is not None:
        dev_candidates = nominate(data.dev.tokens, wanted)
    if isinstance(network, PaperNetwork):
        network.start_from(data.train.tokens)
    if isinstance(network, LabelQueryNetwork) and network.names is not None:
        idf = inverse_document_frequency(data.train.tokens, data.tokenizer.size)
        idf[[padding_id, data.tokenizer.unknown_id]] = 0
        network.to(PartialState().device)  # where there is a GPU, a transformer reads the names there
        network.read_names(data.name_texts(), idf, data.labels.counts, data.train.tokens)
    learner, train, dev = network, data.train, data.dev
    if isinstance(network, EmbeddingLinear):  # its transformer is not trained, so it reads each document once
        network.to(PartialState().device)
        learner, train, dev = embed_documents(network, data, config.inference.batch, progress)
    task = LabelTask(
        config,
        train,
        dev,
        data.labels,
        padding_id,
        train_candidates,
        dev_candidates,
        title=config.model.name,
    )
    history = train_network(learner, task, config.training, folder.checkpoint / "network", progress, recorder)
    facts: dict[str, Any] = {
        "training_documents": len(data.train),
        "data": data.fingerprint(),
        "embedding_size": embedding_size(config.model.embedding_size, data.vectors),
        "epochs_run": len(history),
        "threshold": 0.5,
    }
    if words is not None:
        facts["lexical"] = evidence_system(config.inference.lexical, len(data.train), len(data.taught))
    nominating = nominator if ranks_candidates else None
    model = LabelModel(config, data.tokenizer, data.labels, network, nominating, facts, words=words)
    if words is not None:
        _weigh_words(model, data, progress)
    if data.dev is not None:
        rankings = model.rank_tokens(data.dev.tokens, RANKED)  # as users will, in float32
        facts["threshold"] = tuned_threshold(config, rankings, data.dev)
        facts["dev"] = task.evaluate(rankings, facts["threshold"])
        if model.words is not None:  # the epochs' figures were the network's
            told = "  ".join(f"{name} {facts['dev'][name]:.4f}" for name in ("P@1", "P@5", "nDCG@5"))
            progress.say(f"network and words, on the documents they were weighed on: {told}")
    return model


def _without_nominations(config: Config, progress: TrainingProgress) -> Config:
    """The same, routed to all labels: nobody but words could nominate a label without examples."""
    if not config.inference.candidates and config.training.negatives != "hard":
        return config
    progress.say("too few documents to weigh words on: the network routes to all labels, without candidates")
    everywhere = {
        "training": config.training.model_copy(update={"negatives": "all"}),
        "inference": config.inference.model_copy(update={"candidates": 0}),
    }
    return config.model_copy(update=everywhere)


def _weigh_words(model: LabelModel, data: PreparedLabels, progress: TrainingProgress) -> None:
    """Learns how much words count; "auto" does without them where held-out documents cannot tell."""
    try:
        model.fusion = learn_fusion(model, data)
    except DataError as error:
        if model.config.inference.lexical != "auto":
            raise
        progress.say(f"words are left out: {error.problem}")
        model.words = None
        del model.facts["lexical"]


def needs_nominator(config: Config, label_count: int) -> bool:
    """Whether a network without words beside it routes to labels that a Kim-CNN nominates."""
    return 0 < config.inference.candidates < label_count or config.training.negatives == "hard"


def train_nominator(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> nn.Module:
    """Trains the Kim-CNN that nominates candidates, on the same documents, before the network."""
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
