"""Apply a change of labels to every part of a hybrid model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from nlpcapsule.learning.evidence_rows import changed_evidence, label_centroids
from nlpcapsule.learning.label_changes import LabelChange, hybrid_of
from nlpcapsule.learning.network_rows import RowTraining, changed_network, train_rows
from nlpcapsule.lexical.sparse_rows import DenseProducts
from nlpcapsule.scoring.build import hybrid_scorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.progress import TrainingProgress


def change_model(
    model: LabelModel,
    change: LabelChange,
    what: str,
    progress: TrainingProgress,
    settings: RowTraining | None = None,
) -> LabelModel:
    """Return a model with changed labels and documents.

    The encoder, the rows of labels that are not refitted, the fusion weights and the threshold are kept.

    Args:
        model: A hybrid; not changed.
        change: The labels and documents.
        what: The change in words, for the model card.
        progress: Receives progress.
        settings: How the network's rows are trained.
    """
    scorer, evidence, network = hybrid_of(model)
    assert model.facts.lexical is not None
    tokenizer, seed = model.tokenizer, model.config.training.seed
    ignored = (tokenizer.padding_id, tokenizer.unknown_id)
    progress.start("lexical rows", total=1)
    changed = changed_evidence(
        evidence, model.facts.lexical, change, tokenizer.vocabulary, ignored, seed, progress.parts
    )
    centroids = label_centroids(changed)  # (n', V)
    rows = changed_network(network, change, _similarity(change, centroids, label_centroids(evidence)))
    progress.start("network rows", total=1)
    train_rows(
        rows,
        change,
        changed.neighbours.documents,
        centroids,
        tokenizer.padding_id,
        settings or RowTraining(seed=seed),
        progress.parts,
    )
    fusion = scorer.fusion
    if not fusion.rarest:
        fusion = replace(fusion, rarest=float(scorer.frequency[scorer.frequency > 0].min(initial=1.0)))
    changed_scorer = hybrid_scorer(model.config, tokenizer, change.labels, rows, changed, fusion)
    facts = replace(
        model.facts,
        training_documents=len(change.documents.tokens),
        changes=(*(model.facts.changes or ()), what),
    )
    return LabelModel(model.config, tokenizer, change.labels, changed_scorer, facts)


def _similarity(change: LabelChange, centroids: sparse.csr_matrix, old: sparse.csr_matrix) -> np.ndarray:
    """Return the cosine (added, n) of the labels that are added with the old ones."""
    return DenseProducts(old)(centroids[change.added])
