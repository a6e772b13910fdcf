"""Label names beside a data set's arrays, for systems that use them.

FOLDER/label-names.json       what labels are called
FOLDER/unseen-labels.json     per part, which labels the ids stand for that no training document has
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from nlpcapsule.atomic_files import write_text
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.label_names import Thesaurus
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import DataError
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.experiments.label_data import IN_PIECES, READERS

NAMES_FILE = "label-names.json"
_UNSEEN_FILE = "unseen-labels.json"
_NAMED_BY_EUROVOC = ("eurlex15k", "eurlex57k")


def keep_label_names(name: str, data: Path, folder: Path) -> bool:
    """Writes the two files into a data set's folder, where its labels have names; says whether they have.

    Args:
        name: The data set.
        data: The folder of real data.
        folder: The data set's arrays.
    """
    base, source = name.removesuffix(IN_PIECES), data / "eurlex57k" / "eurovoc.json.gz"
    if base not in _NAMED_BY_EUROVOC or not source.exists():
        return False
    labels = LabelVocabulary.from_json((folder / "labels.json").read_text(encoding="utf-8"))
    _, select, report = READERS[base](data)
    write_label_names(folder, Thesaurus.read(source), labels, select, report)
    return True


def write_label_names(
    folder: Path,
    thesaurus: Thesaurus,
    labels: LabelVocabulary,
    select: Iterable[Document],
    report: Iterable[Document],
) -> None:
    """Writes the two files.

    Args:
        folder: The data set's arrays.
        thesaurus: What labels are called.
        labels: The labels that the arrays' ids are of.
        select: The documents to select on, in the arrays' order.
        report: The documents to report on, likewise.
    """
    unseen = {
        part: list(dict.fromkeys(label for row in documents for label in row.labels if label not in labels))
        for part, documents in (("select", select), ("report", report))
    }
    write_text(folder / NAMES_FILE, thesaurus.to_json())
    write_text(folder / _UNSEEN_FILE, json.dumps(unseen, indent=0) + "\n")


def named_folder(name: str, data: Path, made: Path) -> Path:
    """The folder with a data set's label names.

    Args:
        name: The data set.
        data: The folder of real data, or of data sets as arrays with their names.
        made: Where this data set's arrays were made of real data, and its names will be.
    """
    if (data / name / NAMES_FILE).exists():
        return data / name
    if (made / "labels.json").exists() and not (made / NAMES_FILE).exists():
        keep_label_names(name, data, made)
    return made


def with_label_names(parts: EncodedParts, folder: Path) -> tuple[EncodedParts, Thesaurus]:
    """The parts with labels that are known by name alone among their labels, and what all are called."""
    for name in (NAMES_FILE, _UNSEEN_FILE):
        if not (folder / name).exists():
            raise DataError(
                f"{name} is missing, so labels have no names here",
                folder,
                hint="make it with `python -m nlpcapsule.experiments prepare`",
            )
    thesaurus = Thesaurus.read(folder / NAMES_FILE)
    unseen = json.loads((folder / _UNSEEN_FILE).read_text(encoding="utf-8"))
    labels = parts.labels.with_names(thesaurus)
    select, report = (
        _renumbered(part, len(parts.labels), labels, unseen[name], folder / _UNSEEN_FILE)
        for name, part in (("select", parts.select), ("report", parts.report))
    )
    return replace(parts, labels=labels, select=select, report=report), thesaurus


def _renumbered(
    documents: EncodedDocuments, seen: int, labels: LabelVocabulary, unseen: list[str], path: Path
) -> EncodedDocuments:
    """Documents whose ids from `seen` upwards stood for the unseen labels, in their order."""
    numbers = np.array([*range(seen), *labels.encode([unseen])[0]], dtype=np.int32)
    if documents.labels.values.max(initial=-1) >= len(numbers):
        raise DataError("does not belong to these documents: they have more labels", path)
    renumbered = Ragged(numbers[documents.labels.values], documents.labels.offsets)
    return EncodedDocuments(documents.tokens, renumbered)
