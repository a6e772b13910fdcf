"""Learn from further documents, with old and new labels, without training from scratch.

The encoder and the fusion weights stay as they are. Documents join the model's training documents, so that
similar texts find them at once. The rows of new labels, of labels that were rejected, and of labels that have
at least three documents more and half as many again are trained, in the lexical system on all documents, in
the network on a choice of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nlpcapsule.data.encoded import encode_texts
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError
from nlpcapsule.learning.change_model import change_model
from nlpcapsule.learning.examples import Example
from nlpcapsule.learning.label_changes import KeptDocuments, LabelChange, hybrid_of, kept_documents
from nlpcapsule.learning.network_rows import RowTraining
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.progress import TrainingProgress

_GROWTH, _MORE = (
    1.5,
    3,
)  # a label's rows are trained again if it has so many times, and so many more, documents
_MANY_UNKNOWN = 0.3  # share of words that the model does not know, from which a user is warned


@dataclass(frozen=True)
class Learned:
    """What was learned.

    Attributes:
        model: The new model.
        added: Documents that were added.
        updated: Documents that the model already had, and whose labels changed.
        new_labels: Labels that the model did not have.
        refitted: Labels whose rows were trained, new ones among them.
    """

    model: LabelModel
    added: int
    updated: int
    new_labels: tuple[str, ...]
    refitted: tuple[str, ...]

    def summary(self) -> str:
        """Return a sentence.

        Example:
            'learned 12 documents (2 of them known before), 1 new label, 3 labels trained'
        """
        return (
            f"learned {_counted(self.added + self.updated, 'document')} ({self.updated:,} of them known "
            f"before), {_counted(len(self.new_labels), 'new label')}, "
            f"{_counted(len(self.refitted), 'label')} trained"
        )


def learn(
    model: LabelModel,
    examples: Sequence[Example],
    progress: TrainingProgress | None = None,
    settings: RowTraining | None = None,
) -> Learned:
    """Teach a model further documents.

    A document that the model already has is not added again: accepted labels are added to it, rejected ones
    removed. Labels that are neither accepted nor rejected count as absent in a new document.

    Args:
        model: A hybrid model; not changed.
        examples: The documents.
        progress: Receives progress.
        settings: How the network's rows are trained.

    Raises:
        DataError: If there is nothing to learn, or the model is of another kind.
    """
    _, evidence, _ = hybrid_of(model)
    kept = kept_documents(evidence)
    names = list(model.labels.ids)
    ids = {name: number for number, name in enumerate(names)}
    for example in examples:
        for label in example.accepted:
            if label not in ids:
                ids[label] = len(names)
                names.append(label)
    tokens = encode_texts((row.text for row in examples), model.tokenizer, model.config.text.max_tokens)
    merged = _merge(kept, tokens, examples, ids)
    if not len(merged.learned):
        raise DataError("there is nothing to learn: the model has these documents with these labels already")
    progress = progress or TrainingProgress(True)
    unknown = (tokens.values == model.tokenizer.unknown_id).mean()
    if unknown > _MANY_UNKNOWN:
        progress.say(
            f"warning: {unknown:.0%} of the words are unknown to the model, which cannot tell them apart: to "
            "learn them, train it again with these documents"
        )
    refit = _refitted(model, merged.documents.labels, len(names), examples, ids)
    titles = None
    if model.labels.names is not None:
        titles = [*model.labels.names, *names[len(model.labels) :]]
    sources = [(label,) if label < len(model.labels) else () for label in range(len(names))]
    change = LabelChange.plan(names, titles, sources, merged.documents, refit, merged.learned)
    learned = Learned(
        model,
        len(merged.documents.tokens) - len(kept.tokens),
        int((merged.learned < len(kept.tokens)).sum()),
        tuple(names[len(model.labels) :]),
        tuple(name for name, is_refit in zip(names, refit, strict=True) if is_refit),
    )
    changed = change_model(model, change, learned.summary(), progress, settings)
    return Learned(changed, learned.added, learned.updated, learned.new_labels, learned.refitted)


@dataclass(frozen=True, eq=False)
class _Merged:
    """Old and new documents, and the rows of those that are new or changed."""

    documents: KeptDocuments
    learned: np.ndarray


def _merge(kept: KeptDocuments, tokens: Ragged, examples: Sequence[Example], ids: dict[str, int]) -> _Merged:
    """Add documents, or change the labels of those that are there already."""
    rows = {row.tobytes(): number for number, row in enumerate(kept.tokens)}
    old = kept.labels
    labels = [
        set(old.indices[old.indptr[row] : old.indptr[row + 1]].tolist()) for row in range(len(kept.tokens))
    ]
    texts, names = list(kept.tokens), list(kept.ids)
    learned = set()
    for text, example in zip(tokens, examples, strict=True):
        row = rows.setdefault(text.tobytes(), len(texts))
        if row == len(texts):
            texts.append(text)
            labels.append(set())
            names.append(None)
            learned.add(row)
        names[row] = example.id or names[row]
        accepted = {ids[label] for label in example.accepted}
        rejected = {ids[label] for label in example.rejected if label in ids}
        decided = (labels[row] | accepted) - rejected
        if decided != labels[row]:
            labels[row] = decided
            learned.add(row)
    flat = [label for row in labels for label in sorted(row)]
    ends = np.concatenate([[0], np.cumsum([len(row) for row in labels])])
    matrix = sparse.csr_matrix(
        (np.ones(len(flat), dtype=np.float32), np.array(flat, dtype=np.int32), ends),
        shape=(len(texts), len(ids)),
    )
    documents = KeptDocuments(Ragged.from_rows(texts), matrix, names)
    return _Merged(documents, np.array(sorted(learned), dtype=np.int64))


def _refitted(
    model: LabelModel,
    labels: sparse.csr_matrix,
    count: int,
    examples: Sequence[Example],
    ids: dict[str, int],
) -> np.ndarray:
    """Return (n',) which labels' rows are trained: new, rejected, or with many more documents."""
    before = np.zeros(count, dtype=np.int64)
    before[: len(model.labels)] = model.labels.counts
    after = np.bincount(labels.indices, minlength=count)
    refit = (before == 0) | ((after >= before + _MORE) & (after >= _GROWTH * before))
    rejected = {ids[label] for example in examples for label in example.rejected if label in ids}
    refit[list(rejected)] = True
    return refit & (after > 0)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
