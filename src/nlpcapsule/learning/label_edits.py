"""Rename, merge and retire labels of a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from nlpcapsule.errors import DataError, did_you_mean, quoted
from nlpcapsule.learning.change_model import change_model
from nlpcapsule.learning.label_changes import KeptDocuments, LabelChange, hybrid_of, kept_documents
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.progress import TrainingProgress


def rename_label(model: LabelModel, old: str, new: str) -> LabelModel:
    """Give a label another id; its rows and documents stay as they are.

    Raises:
        DataError: If there is no such label, or the new id is taken or blank.
    """
    label = _find(model, old)
    if not new.strip():
        raise DataError("the new name is blank", hint="give a name")
    if new in model.labels:
        raise DataError(f"there already is a label {quoted(new)}", hint="merge the two with `labels merge`")
    names = list(model.labels.ids)
    names[label] = new
    sources = [(number,) for number in range(len(names))]
    return _changed(model, names, sources, _documents(model), [], f"renamed {old!r} to {new!r}")


def retire_labels(model: LabelModel, labels: Sequence[str]) -> LabelModel:
    """Remove labels; their documents stay, without them.

    Raises:
        DataError: If there is no such label, or none would be left.
    """
    gone = {_find(model, label) for label in labels}
    kept = [number for number in range(len(model.labels)) if number not in gone]
    documents = _documents(model)
    without = replace(documents, labels=documents.labels[:, kept].tocsr())
    names = [model.labels.ids[number] for number in kept]
    what = f"retired {', '.join(map(repr, labels))}"
    return _changed(model, names, [(number,) for number in kept], without, [], what)


def merge_labels(
    model: LabelModel, labels: Sequence[str], target: str, progress: TrainingProgress | None = None
) -> LabelModel:
    """Merge labels into another one, which is trained on the documents of all.

    Args:
        model: The model; not changed.
        labels: Labels that end.
        target: The label that continues them.
        progress: Receives progress.

    Raises:
        DataError: If there is no such label, or a label would be merged into itself.
    """
    into = _find(model, target)
    gone = {_find(model, label) for label in labels}
    if into in gone or not gone:
        raise DataError(f"{quoted(target)} cannot be merged into itself", hint="name other labels to merge")
    kept_documents(hybrid_of(model)[1])  # the merged label's rows are trained on them
    kept = [number for number in range(len(model.labels)) if number not in gone]
    documents = _documents(model)
    columns = documents.labels.tolil()
    columns[:, into] = documents.labels[:, [into, *sorted(gone)]].max(axis=1)
    merged = replace(documents, labels=sparse.csr_matrix(columns[:, kept], dtype=np.float32))
    names = [model.labels.ids[number] for number in kept]
    sources = [(into, *sorted(gone)) if number == into else (number,) for number in kept]
    what = f"merged {', '.join(map(repr, labels))} into {target!r}"
    return _changed(model, names, sources, merged, [kept.index(into)], what, progress)


def _changed(
    model: LabelModel,
    names: list[str],
    sources: Sequence[tuple[int, ...]],
    documents: KeptDocuments,
    refitted: list[int],
    what: str,
    progress: TrainingProgress | None = None,
) -> LabelModel:
    refit = np.zeros(len(names), dtype=bool)
    refit[refitted] = True
    titles = None
    if model.labels.names is not None:
        titles = [model.labels.names[source[0]] for source in sources]
    change = LabelChange.plan(names, titles, sources, documents, refit)
    return change_model(model, change, what, progress or TrainingProgress(True))


def _documents(model: LabelModel) -> KeptDocuments:
    return kept_documents(hybrid_of(model)[1])


def _find(model: LabelModel, label: str) -> int:
    if label not in model.labels:
        hint = did_you_mean(label, model.labels.ids) if len(model.labels) <= 10_000 else "check the spelling"
        raise DataError(f"the model has no label {quoted(label)}", hint=hint[:300])
    return model.labels.ids.index(label)
