"""Train a label model from prepared documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from accelerate import PartialState
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
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
from nlpcapsule.networks.preparation import EmbedsDocuments, StartsFromTexts
from nlpcapsule.scoring.build import hybrid_parts, network_scorer
from nlpcapsule.scoring.documents import RANKED, rank_documents, rank_scores
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES, HybridParts, HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.scorer import Scores
from nlpcapsule.training.embedded_documents import embed_documents
from nlpcapsule.training.fit_lexical import fit_evidence, fit_lexical, learn_fusion
from nlpcapsule.training.label_task import LabelTask
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
    lexical: WordEvidence | None = None,
    nominator: nn.Module | None = None,
) -> LabelModel:
    """Train a label model and write its folder.

    Args:
        data: What to train on.
        config: The configuration.
        folder: Where checkpoints and the finished model go.
        progress: Receives progress.
        lexical: A fitted lexical system to join with the network; None fits one for a hybrid.
        nominator: A trained Kim-CNN, as `train_nominator` returns it; None trains one if needed.
    """
    folder.begin(config, data.fingerprint())
    for note in data.notes:
        progress.say(note)
    if isinstance(config.model, LexicalSettings):
        model = fit_lexical(data, config, folder, progress)
    else:
        model = _fit_network(data, config, folder, progress, lexical, nominator)
    folder.finish(model)
    return model


def _fit_network(
    data: PreparedLabels,
    config: Config,
    folder: RunFolder,
    progress: TrainingProgress,
    lexical: WordEvidence | None,
    nominator: nn.Module | None,
) -> LabelModel:
    """Train a network, and its nominator if it needs one."""
    padding_id, label_count = data.tokenizer.padding_id, len(data.labels)
    network = build_label_network(config, data.tokenizer.size, label_count, padding_id, data.vectors)
    recorder = Recorder(folder.path, "network", folder.tensorboard)
    if lexical is None and config.lexical is not None and data.dev is not None:
        lexical = fit_evidence(data, config, folder, progress)
    if lexical is None and data.thesaurus is not None:
        config = _without_nominations(config, progress)
    wanted = config.inference.candidates or (0 if lexical is None else CANDIDATES)
    ranks_candidates = lexical is not None or 0 < wanted < label_count
    if lexical is None and nominator is None and needs_nominator(config, label_count):
        nominator = train_nominator(data, config, folder, progress)

    def nominate(tokens: Ragged, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the candidates (N, C) of documents, best first, and their scores (N, C)."""
        if lexical is not None:
            return lexical.top(tokens, count)
        assert nominator is not None
        scorer = NetworkScorer(nominator, padding_id, config.inference.batch_size)
        ranked = rank_documents(scorer, tokens, count)
        return ranked.labels, ranked.scores

    train_candidates, nominated = None, None
    if config.training.negatives == "hard":
        width = min(max(wanted, 2 * config.training.negative_count), label_count)
        train_candidates = nominate(data.train.tokens, width)[0]
    if ranks_candidates and data.dev is not None:
        nominated = nominate(data.dev.tokens, wanted)
    if isinstance(network, StartsFromTexts):
        network.start_from(data.train.tokens)
    if isinstance(network, LabelQueryNetwork) and network.names is not None:
        idf = inverse_document_frequency(data.train.tokens, data.tokenizer.size)
        idf[[padding_id, data.tokenizer.unknown_id]] = 0
        network.to(PartialState().device)  # on a GPU, if there is one, a transformer encodes the names faster
        network.read_names(data.name_texts(), idf, data.labels.counts, data.train.tokens)
    learner, train, dev = network, data.train, data.dev
    if isinstance(network, EmbedsDocuments):
        network.to(PartialState().device)
        learner, train, dev = embed_documents(network, data, config.inference.batch_size, progress)
    task = LabelTask(
        config,
        train,
        dev,
        data.labels,
        padding_id,
        train_candidates,
        None if nominated is None else nominated[0],
        title=config.network.name,
    )
    history = train_network(learner, task, config.training, folder.checkpoint / "network", progress, recorder)
    network.eval()
    facts = ModelFacts(
        training_documents=len(data.train),
        data=data.fingerprint(),
        embedding_size=embedding_size(config.network.word_vector_size, data.vectors),
        epochs_run=len(history),
        threshold=0.5,
    )
    nominating = nominator if ranks_candidates else None
    alone = network_scorer(config, data.tokenizer, network, nominating)
    model = LabelModel(config, data.tokenizer, data.labels, alone, facts)
    if data.dev is None:
        return model
    # Score held-out documents once, in float32, as at inference.
    joined = None
    if lexical is not None and nominated is not None:
        parts = hybrid_parts(config, data.tokenizer, data.labels, network, lexical)
        joined = _join(parts, nominated, data.dev, config, progress)
    if joined is not None and config.lexical is not None:
        scorer, scores = joined
        name = evidence_system(config.lexical, len(data.train), len(data.taught))
        facts = replace(facts, lexical=name)
        model = replace(model, scorer=scorer)
        rankings = rank_scores(scores, RANKED, model.unused)
    else:
        rankings = model.rank_tokens(data.dev.tokens, RANKED)
    threshold = tuned_threshold(config, rankings, data.dev)
    dev_metrics = task.evaluate(rankings, threshold)
    if joined is not None:  # the epochs' metrics were those of the network alone
        told = "  ".join(f"{name} {dev_metrics[name]:.4f}" for name in ("P@1", "P@5", "nDCG@5"))
        progress.say(f"network and lexical system, on the documents they were weighed on: {told}")
    return replace(model, facts=replace(facts, threshold=threshold, dev=dev_metrics))


def _join(
    parts: HybridParts,
    nominated: tuple[np.ndarray, np.ndarray],
    dev: EncodedDocuments,
    config: Config,
    progress: TrainingProgress,
) -> tuple[HybridScorer, Scores] | None:
    """Learn the fusion weights; with "auto", return None if there are too few held-out documents.

    Args:
        parts: The lexical system and the network.
        nominated: The held-out documents' candidates (N, C) and their lexical log-odds (N, C).
        dev: The held-out documents.
        config: The configuration.
        progress: Reports when the lexical system is left out.

    Returns:
        The hybrid scorer and its scores of the held-out documents.
    """
    features, scored = parts.features(dev.tokens, *nominated)
    try:
        fusion = learn_fusion(features, nominated[0], dev)
    except DataError as error:
        if config.lexical != "auto":
            raise
        progress.say(f"the lexical system is left out: {error.problem}")
        return None
    return HybridScorer(parts, fusion), replace(scored, log_odds=fusion(features))


def _without_nominations(config: Config, progress: TrainingProgress) -> Config:
    """Return a configuration that routes to all labels: only a lexical system nominates unused labels."""
    if not config.inference.candidates and config.training.negatives != "hard":
        return config
    progress.say("too few documents to weigh lexical scores on: the network routes to all labels")
    everywhere = {
        "training": config.training.model_copy(update={"negatives": "all"}),
        "inference": config.inference.model_copy(update={"candidates": 0}),
    }
    return config.model_copy(update=everywhere)


def needs_nominator(config: Config, label_count: int) -> bool:
    """Return whether the network routes to labels that a Kim-CNN nominates."""
    return 0 < config.inference.candidates < label_count or config.training.negatives == "hard"


def train_nominator(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> nn.Module:
    """Train the Kim-CNN that nominates candidates, on the same documents as the network."""
    beside = nominator_config(config)
    nominator = build_label_network(
        beside, data.tokenizer.size, len(data.labels), data.tokenizer.padding_id, data.vectors
    )
    task = LabelTask(
        beside, data.train, data.dev, data.labels, data.tokenizer.padding_id, title="kim-cnn (nominates)"
    )
    recorder = Recorder(folder.path, "nominator", folder.tensorboard)
    train_network(nominator, task, beside.training, folder.checkpoint / "nominator", progress, recorder)
    return nominator
