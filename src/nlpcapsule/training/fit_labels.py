"""Train a label model from prepared documents."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.word_frequency import inverse_document_frequency
from nlpcapsule.encoders.word_encoder import embedding_size
from nlpcapsule.errors import DataError
from nlpcapsule.lexical.candidates import LOW_RECALL, candidate_recall, nominate_to_file
from nlpcapsule.lexical.evidence import FittedEvidence, evidence_settings
from nlpcapsule.lexical.ranker import LexicalSettings
from nlpcapsule.networks.build import EmbedsDocuments, build_network, start_from_texts
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.scoring.build import hybrid_scorer, network_scorer, nominator_config
from nlpcapsule.scoring.documents import RANKED, rank_documents, rank_scores
from nlpcapsule.scoring.facts import ModelFacts
from nlpcapsule.scoring.fusion import Fusion, is_relevant
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES, HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.scoring.scorer import Scores
from nlpcapsule.training.fit_lexical import fit_evidence, fit_lexical
from nlpcapsule.training.label_task import LabelTask
from nlpcapsule.training.loop import train_network
from nlpcapsule.training.preparation import tuned
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.recorder import Recorder
from nlpcapsule.training.row_updates import MANY_LABELS
from nlpcapsule.training.run_folder import RunFolder
from nlpcapsule.training.shared_work import array_of_main, this_process

_MOST_DOCUMENTS = 10_000  # that fusion weights are fitted to: enough for a few dozen, at about a gigabyte


def fit_labels(
    data: PreparedLabels,
    config: Config,
    folder: RunFolder,
    progress: TrainingProgress,
    lexical: FittedEvidence | None = None,
    nominator: nn.Module | None = None,
) -> LabelModel:
    """Train a label model and write its folder.

    A hybrid's lexical system and the Kim-CNN that nominates candidates are fitted, unless they are given. Of
    several processes one fits lexical systems and fusion weights, and the others read the finished model.
    """
    folder.begin(config, data.fingerprint())
    for note in data.notes:
        progress.say(note)
    if isinstance(config.model, LexicalSettings):
        model = fit_lexical(data, config, folder, progress) if folder.is_writer else None
    else:
        model = NetworkTraining(data, config, folder, progress, lexical, nominator).fit()
    return folder.finish(model)


@dataclass
class NetworkTraining:
    """The training of a network and of what nominates its candidates, step by step.

    A hybrid's lexical system nominates candidates or, without one, a Kim-CNN if the network needs it.
    """

    data: PreparedLabels
    config: Config
    folder: RunFolder
    progress: TrainingProgress
    lexical: FittedEvidence | None
    nominator: nn.Module | None
    candidate_recall: float | None = None  # of the held-out documents' candidates

    def fit(self) -> LabelModel | None:
        """Return the trained model; None in a process that does not write it."""
        if self.has_lexical:
            self.config = with_partial_routing(self.config, len(self.data.labels))
        network = label_network(self.config, self.data)  # first, since it rejects impossible settings
        recorder = Recorder(self.folder.path, "network", self.folder.tensorboard)
        self.fit_nominators()
        is_writer = self.folder.is_writer
        hard_negatives = array_of_main(self.hard_negatives() if is_writer else None)
        nominated = self.dev_candidates() if is_writer else None
        candidates = array_of_main(None if nominated is None else nominated[0])
        self.initialize(network)
        learner, train, dev = self.trained_part(network)
        padding_id, title = self.data.tokenizer.padding_id, self.config.network.name
        task = LabelTask(
            self.config, train, dev, self.data.labels, padding_id, hard_negatives, candidates, title
        )
        checkpoint = self.folder.checkpoint / "network"
        history = train_network(learner, task, self.config.training, checkpoint, self.progress, recorder)
        if not is_writer:
            return None
        model = self.model_of(network.eval(), history)
        return model if self.data.dev is None else self.tune(model, network, nominated)

    def fit_nominators(self) -> None:
        """Fit the lexical system of a hybrid, or train the Kim-CNN that other networks need."""
        data, config = self.data, self.config
        if self.has_lexical:
            if self.lexical is None and self.folder.is_writer:
                self.lexical = fit_evidence(data, config, self.folder, self.progress)
            return
        needs_nominations = config.inference.candidates or config.training.negatives == "hard"
        if data.thesaurus is not None and needs_nominations:  # only a lexical system nominates unused labels
            self.progress.say(
                "too few documents to weigh lexical scores on: the network routes to all labels"
            )
            training = config.training.model_copy(update={"negatives": "all"})
            inference = config.inference.model_copy(update={"candidates": 0})
            self.config = config = config.model_copy(update={"training": training, "inference": inference})
        if self.nominator is None and needs_nominator(config, len(data.labels)):
            self.nominator = train_nominator(data, config, self.folder, self.progress)

    @property
    def has_lexical(self) -> bool:
        """Whether a lexical system nominates; only the process that writes the model holds it."""
        return self.lexical is not None or (self.config.lexical is not None and self.data.dev is not None)

    @property
    def candidate_count(self) -> int:
        """How many labels are nominated for a document; 0 for all."""
        return self.config.inference.candidates or (CANDIDATES if self.has_lexical else 0)

    @property
    def ranks_candidates(self) -> bool:
        """Whether the network ranks nominated labels only."""
        return self.has_lexical or 0 < self.candidate_count < len(self.data.labels)

    def hard_negatives(self) -> np.ndarray | None:
        """Return labels (N, C) nominated for the training documents, if they are to be negatives."""
        training = self.config.training
        if training.negatives != "hard":
            return None
        width = min(max(self.candidate_count, 2 * training.negative_count), len(self.data.labels))
        path = self.folder.checkpoint / "candidates.npy"
        return nominate_to_file(self.nominate, self.data.train.tokens, width, path)

    def dev_candidates(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the held-out documents' candidates and their scores, if only candidates are ranked."""
        if self.data.dev is None or not self.ranks_candidates:
            return None
        nominated = self.nominate(self.data.dev.tokens, self.candidate_count)
        self.candidate_recall = candidate_recall(nominated[0], self.data.dev.labels, len(self.data.labels))
        recall, count = self.candidate_recall, nominated[0].shape[1]
        if recall is not None:
            self.progress.say(
                f"candidates: {count} per document contain {recall:.1%} of its labels (held-out data)"
            )
            if recall < LOW_RECALL:
                advice = "set inference.candidates higher, or add data"
                self.progress.say(f"warning: no network can find the other labels: {advice}")
        return nominated

    def nominate(self, tokens: Ragged, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the candidates (N, C) of documents, best first, and their scores (N, C)."""
        if self.lexical is not None:
            return self.lexical.top(tokens, count)
        assert self.nominator is not None
        batch_size, padding_id = self.config.inference.batch_size, self.data.tokenizer.padding_id
        ranked = rank_documents(NetworkScorer(self.nominator, padding_id, batch_size), tokens, count)
        return ranked.labels, ranked.scores

    def initialize(self, network: nn.Module) -> None:
        """Compute what a network learns from texts and label names before training."""
        data = self.data
        start_from_texts(network, data.train.tokens)
        if isinstance(network, LabelQueryNetwork) and network.names is not None:
            idf = inverse_document_frequency(data.train.tokens, data.tokenizer.size)
            idf[[data.tokenizer.padding_id, data.tokenizer.unknown_id]] = 0
            network.to(this_process().device)  # a transformer encodes the names faster on a GPU
            network.read_names(data.name_texts(), idf, data.labels.counts, data.train.tokens)

    def trained_part(self, network: nn.Module) -> tuple[nn.Module, EncodedDocuments, EncodedDocuments | None]:
        """Return what is trained, the network or its head, and the documents that it reads."""
        if not isinstance(network, EmbedsDocuments):
            return network, self.data.train, self.data.dev
        network.to(this_process().device)
        parts = [part for part in (self.data.train, self.data.dev) if part is not None]
        self.progress.start("embedding", total=sum(map(len, parts)))
        batch_size = self.config.inference.batch_size
        learner, embedded = network.embed_documents(parts, batch_size, self.progress.parts)
        return learner, embedded[0], embedded[1] if len(embedded) > 1 else None

    def model_of(self, network: nn.Module, history: list[dict[str, Any]]) -> LabelModel:
        """Return the model of the network alone."""
        facts = ModelFacts(
            training_documents=len(self.data.train),
            data=self.data.fingerprint(),
            embedding_size=embedding_size(self.config.network.word_vector_size, self.data.vectors),
            epochs_run=len(history),
            threshold=0.5,
            candidate_recall=self.candidate_recall,
        )
        nominator = self.nominator if self.ranks_candidates else None
        scorer = network_scorer(self.config, self.data.tokenizer, network, nominator)
        return LabelModel(self.config, self.data.tokenizer, self.data.labels, scorer, facts)

    def tune(
        self, model: LabelModel, network: nn.Module, nominated: tuple[np.ndarray, np.ndarray] | None
    ) -> LabelModel:
        """Fit fusion weights and the threshold to held-out documents, scored once, as at inference."""
        dev, config = self.data.dev, self.config
        assert dev is not None
        fused = None if nominated is None else self.fuse(network, *nominated)
        if fused is None:
            return tuned(model, model.rank_tokens(dev.tokens, RANKED), dev)
        assert config.lexical is not None
        scorer, scores = fused
        name = evidence_settings(config.lexical).name
        model = replace(model, scorer=scorer, facts=replace(model.facts, lexical=name))
        model = tuned(model, rank_scores(scores, RANKED), dev)
        metrics = model.facts.dev or {}
        # The epochs' metrics were those of the network alone.
        figures = "  ".join(f"{name} {metrics[name]:.4f}" for name in ("P@1", "P@5", "nDCG@5"))
        self.progress.say(f"hybrid, on the held-out documents that fitted its weights: {figures}")
        return model

    def fuse(
        self, network: nn.Module, candidates: np.ndarray, lexical_scores: np.ndarray
    ) -> tuple[HybridScorer, Scores] | None:
        """Learn the fusion weights from the held-out documents' candidates (N, C) and lexical scores (N, C).

        Returns the hybrid scorer and its scores of these documents; None without a lexical system, and with
        "auto" if there are too few documents.
        """
        data, config = self.data, self.config
        if self.lexical is None or config.lexical is None or data.dev is None:
            return None
        scorer = hybrid_scorer(config, data.tokenizer, data.labels, network, self.lexical)
        features, scored = scorer.features(data.dev.tokens, candidates, lexical_scores)
        rows = np.arange(len(data.dev))
        if len(rows) > _MOST_DOCUMENTS:
            rows = np.linspace(0, len(rows) - 1, _MOST_DOCUMENTS).astype(int)
        try:
            truth = [data.dev.labels[int(row)] for row in rows]
            fusion = Fusion.fit(features[rows], is_relevant(candidates[rows], truth))
        except DataError as error:
            if config.lexical != "auto":
                raise
            self.progress.say(f"the lexical system is left out: {error.problem}")
            return None
        return replace(scorer, fusion=fusion), replace(scored, log_odds=fusion(features))


def label_network(config: Config, data: PreparedLabels) -> nn.Module:
    """Build the network of a configuration for prepared documents."""
    tokenizer, label_count = data.tokenizer, len(data.labels)
    return build_network(config, tokenizer.size, tokenizer.padding_id, label_count, data.vectors)


def with_partial_routing(config: Config, label_count: int) -> Config:
    """Return a hybrid's configuration with hard negatives if it has too many labels to score them all."""
    if config.training.negatives != "all" or label_count <= MANY_LABELS:
        return config
    training = config.training.model_copy(update={"negatives": "hard"})
    return config.model_copy(update={"training": training})


def needs_nominator(config: Config, label_count: int) -> bool:
    """Return whether the network routes to labels that a Kim-CNN nominates."""
    return 0 < config.inference.candidates < label_count or config.training.negatives == "hard"


def train_nominator(
    data: PreparedLabels, config: Config, folder: RunFolder, progress: TrainingProgress
) -> nn.Module:
    """Train the Kim-CNN that nominates candidates, on the same documents as the network."""
    config = nominator_config(config)
    nominator = label_network(config, data)
    padding_id, title = data.tokenizer.padding_id, "kim-cnn (nominates)"
    task = LabelTask(config, data.train, data.dev, data.labels, padding_id, title=title)
    recorder = Recorder(folder.path, "nominator", folder.tensorboard)
    train_network(nominator, task, config.training, folder.checkpoint / "nominator", progress, recorder)
    return nominator
