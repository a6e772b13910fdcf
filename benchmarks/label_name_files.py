"""Label names stored with a data set's arrays, for systems that use them.

FOLDER/label-names.json       the names of labels
FOLDER/unseen-labels.json     for each part, the labels that no training document has, by id
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.encoded_parts import EncodedParts
from nlpcapsule.atomic_files import write_text
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError

NAMES_FILE = "label-names.json"
UNSEEN_FILE = "unseen-labels.json"


def write_label_names(
    folder: Path,
    thesaurus: Thesaurus,
    labels: LabelVocabulary,
    select: Iterable[Document],
    report: Iterable[Document],
) -> None:
    """Write the two files.

    Args:
        folder: The data set's arrays.
        thesaurus: The names of labels.
        labels: The labels of the arrays' ids.
        select: The documents to select on, in the arrays' order.
        report: The documents to report on, likewise.
    """
    unseen = {
        part: list(dict.fromkeys(label for row in documents for label in row.labels if label not in labels))
        for part, documents in (("select", select), ("report", report))
    }
    write_text(folder / NAMES_FILE, thesaurus.to_json())
    write_text(folder / UNSEEN_FILE, json.dumps(unseen, indent=0) + "\n")


def with_label_names(parts: EncodedParts, folder: Path) -> tuple[EncodedParts, Thesaurus]:
    """Return the parts extended by labels known only by name, and the names of all labels.

    Raises:
        DataError: If the folder has no label names, or those of other documents.
    """
    for name in (NAMES_FILE, UNSEEN_FILE):
        if not (folder / name).exists():
            raise DataError(
                f"{name} is missing, so labels have no names here",
                folder,
                hint="write it with `python -m benchmarks prepare`",
            )
    thesaurus = Thesaurus.read(folder / NAMES_FILE)
    unseen = json.loads((folder / UNSEEN_FILE).read_text(encoding="utf-8"))
    labels = parts.labels.with_names(thesaurus)
    select, report = (
        _renumbered(part, len(parts.labels), labels, unseen[name], folder / UNSEEN_FILE)
        for name, part in (("select", parts.select), ("report", parts.report))
    )
    return replace(parts, labels=labels, select=select, report=report), thesaurus


def _renumbered(
    documents: EncodedDocuments, seen: int, labels: LabelVocabulary, unseen: list[str], path: Path
) -> EncodedDocuments:
    """Return documents whose ids from `seen` upwards are replaced by those of the unseen labels."""
    numbers = np.array([*range(seen), *labels.numbers(unseen, {})], dtype=np.int32)
    if documents.labels.values.max(initial=-1) >= len(numbers):
        raise DataError("does not belong to these documents: they have more labels", path)
    renumbered = Ragged(numbers[documents.labels.values], documents.labels.offsets)
    return EncodedDocuments(documents.tokens, renumbered)
