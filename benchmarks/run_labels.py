"""Train and measure a label system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from benchmarks.cell import Cell, CellRecord
from benchmarks.encoded_parts import EncodedParts
from benchmarks.label_name_files import NAMES_FILE, with_label_names
from nlpcapsule.compare.measuring import Measured, measure_labels, trained
from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.scoring.documents import RANKED
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.preparation import tuned
from nlpcapsule.training.prepared_labels import PreparedLabels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

_FRACTION_SEED = 2019


@dataclass(frozen=True)
class SharedParts:
    """Parts of a label system that several cells share, so that they are trained once.

    Attributes:
        lexical: Returns the stored lexical features of these documents, or None if none are stored.
        nominator: Returns the trained network that nominates candidates, or None if none is needed.
    """

    lexical: Callable[[EncodedParts, Config], Any]
    nominator: Callable[[PreparedLabels, Config, TrainingProgress], nn.Module | None]


def run_labels(
    cell: Cell,
    parts: EncodedParts,
    folder: RunFolder,
    progress: TrainingProgress,
    shared: SharedParts | None = None,
) -> Measured:
    """Train and measure a label system.

    Args:
        cell: The system.
        parts: Its data.
        folder: The folder it is trained in.
        progress: Receives progress.
        shared: Parts that are already trained; None trains everything.

    Returns:
        The record, and metrics per document (4, documents).
    """
    config = cell.config
    thesaurus = None
    if config.text.label_names is not None:
        parts, thesaurus = with_label_names(parts, Path(str(config.text.label_names)).parent)
    cut = parts.cut(config.text.max_tokens)
    data = training_data(cut, cell.fraction, thesaurus)
    words = None if shared is None or config.lexical is None else shared.lexical(cut, config)
    # Stored lexical features are not saved with a model, which cannot be loaded without them.
    can_load = words is None
    needs_training = not (folder.finished and can_load)
    nominator = shared.nominator(data, config, progress) if shared and needs_training else None
    model, facts = trained(
        folder,
        config,
        parts.fingerprint(),
        lambda: fit_labels(data, config, folder, progress, words, nominator),
        can_load,
    )
    record, per_document = measure_labels(model, cut.report)
    # Trained once, measured twice: the difference is the gain from the lexical system.
    alone = _network_only(model, cut.select, cut.report)
    return CellRecord.of(cell, record | facts, network_only=alone).to_json(), per_document


def _network_only(
    model: LabelModel, select: EncodedDocuments, report: EncodedDocuments
) -> dict[str, float] | None:
    """Return the metrics of a hybrid's network alone, with a decision threshold tuned for its scores."""
    if not isinstance(model.scorer, HybridScorer):
        return None
    alone = replace(model, scorer=model.scorer.scorer)
    alone = tuned(alone, alone.rank_tokens(select.tokens, RANKED), select)
    return {**alone.evaluate(report), "threshold": alone.threshold}


def training_data(
    parts: EncodedParts, fraction: float = 1.0, thesaurus: Thesaurus | None = None
) -> PreparedLabels:
    """Return a seeded sample of the training documents, those to select on, and the label names.

    Tokens and labels keep the ids of the whole training part; some labels may have no document.
    """
    train = parts.train
    if fraction < 1:
        order = np.random.default_rng(_FRACTION_SEED).permutation(len(train))
        train = train.take(np.sort(order[: round(fraction * len(train))]))
    counts = np.bincount(train.labels.values, minlength=len(parts.labels))
    labels = LabelVocabulary(parts.labels.ids, counts.tolist(), parts.labels.names)
    return PreparedLabels(parts.tokenizer, labels, train, parts.select, parts.vectors, thesaurus=thesaurus)


def with_names_of(cell: Cell, folder: Path) -> Cell:
    """Return the cell with the label names of a folder."""
    return replace(cell, settings={**cell.settings, "text.label_names": str(folder / NAMES_FILE)})
