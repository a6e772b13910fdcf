"""Prepare the parts of a user's folder once, for the processes that train on them.

labels     OUT/data/words-…/NAME/          token and label ids, as `EncodedParts` keeps them, and label names
answers    OUT/data/questions/NAME/        train.jsonl, select.jsonl, report.jsonl
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nlpcapsule.atomic_files import write_text
from nlpcapsule.compare.answer_parts import AnswerParts
from nlpcapsule.compare.cell import Cell
from nlpcapsule.compare.data import UserFolder, question_row, write_rows
from nlpcapsule.compare.encoded_parts import EncodedParts
from nlpcapsule.compare.label_name_files import write_label_names
from nlpcapsule.compare.pecos_settings import PECOS, PecosSettings
from nlpcapsule.config import Config
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.errors import DataError
from nlpcapsule.training.prepared_labels import prepare_labels

_PARTS = ("train", "select", "report")
_QUESTIONS = {
    "train": "training questions",
    "select": "questions to select on",
    "report": "questions to report on",
}


def prepare(
    source: UserFolder, cells: Sequence[Cell], folder: Path
) -> tuple[dict[str, Path], dict[str, int]]:
    """Prepare missing parts of the data.

    Args:
        source: The user's folder.
        cells: The systems; those with the same tokenization share prepared data.
        folder: OUT/data.

    Returns:
        System → the folder of its prepared data set, and the sizes of the parts.
    """
    if source.kind == "answers":
        place = folder / "questions"
        return {cell.system: place for cell in cells}, _prepare_questions(source, place / cells[0].data)
    groups: dict[str, list[tuple[Cell, Config]]] = {}
    for cell in cells:
        config = reading_config(cell)
        groups.setdefault(_words(config, cell.files), []).append((cell, config))
    places: dict[str, Path] = {}
    sizes: dict[str, int] = {}
    for words, members in groups.items():
        length = max(config.text.max_tokens for _, config in members)
        place = folder / f"{words}-{length}"
        config = members[0][1]
        text = config.text.model_copy(update={"max_tokens": length})
        parts = _encoded(source, config.model_copy(update={"text": text}), place / cells[0].data)
        sizes = sizes or _label_sizes(parts)
        places |= {cell.system: place for cell, _ in members}
    return places, sizes


def reading_config(cell: Cell) -> Config:
    """Return the configuration that defines how a system reads; PECOS reads like the lexical systems."""
    if cell.model != PECOS:
        return cell.config
    length = PecosSettings.model_validate(cell.settings).max_tokens
    return Config.build("labels", "one-vs-rest", overrides={"text.max_tokens": length})


def load_questions(folder: Path) -> AnswerParts:
    """Read the questions that `prepare` wrote."""
    train, select, report = (list(read_questions(folder / f"{part}.jsonl")) for part in _PARTS)
    return AnswerParts(train, select, {"report": report}, None)


def _words(config: Config, files: str) -> str:
    """Return a fingerprint of how words are read: the settings and the contents of the files they name.

    The number of words per text is not part of it.
    """
    read = config.text.model_dump(mode="json", exclude={"max_tokens"})
    told = [read, config.transformer, *([files] if files else [])]
    return "words-" + hashlib.sha256(json.dumps(told).encode()).hexdigest()[:8]


def _encoded(source: UserFolder, config: Config, folder: Path) -> EncodedParts:
    if (folder / "about.json").exists():
        return EncodedParts.load(folder)
    train, select, report = source.documents()
    try:
        data = prepare_labels(train, select, config)
    except DataError as error:
        raise error if error.path else DataError(error.problem, source.train, hint=error.hint) from None
    assert data.dev is not None
    encoded = encode_documents(report, data.tokenizer, data.labels, config.text.max_tokens)
    taught = _taught(data.labels)
    _check_labels(data.dev, taught, source.select or source.train, "select on")
    _check_labels(encoded, taught, source.report, "report on")
    parts = EncodedParts(
        source.name, data.tokenizer, data.labels, data.train, data.dev, encoded, data.vectors
    )
    if data.thesaurus is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_label_names(folder, data.thesaurus, data.labels, select, report)
    parts.save(folder)  # about.json comes last: an interrupted preparation is repeated
    return parts


def _taught(labels: LabelVocabulary) -> int:
    """Return the number of labels with training documents; those known only by name follow them."""
    return int((labels.counts > 0).sum())


def _check_labels(part: EncodedDocuments, taught: int, path: Path, purpose: str) -> None:
    """Reject a part whose labels are all unknown to training; there would be nothing to measure."""
    if not (part.labels.values < taught).any():
        raise DataError(
            f"no document to {purpose} has a label that a training document has",
            path,
            hint="check the labels' key, and that the files belong together",
        )


def _label_sizes(parts: EncodedParts) -> dict[str, int]:
    taught = _taught(parts.labels)
    unseen = parts.report.labels.values[parts.report.labels.values >= taught]
    return {
        "training documents": len(parts.train),
        "documents to select on": len(parts.select),
        "documents to report on": len(parts.report),
        "labels": taught,
        "labels with 1-10 training documents": int((parts.labels.counts[:taught] <= 10).sum()),
        "labels to report on that training never saw": len(np.unique(unseen)),
    }


def _prepare_questions(source: UserFolder, folder: Path) -> dict[str, int]:
    about = folder / "about.json"
    if not about.exists():
        sizes = {}
        for name, questions in zip(_PARTS, source.questions(), strict=True):
            path = {"train": source.train, "report": source.report}.get(name, source.select or source.train)
            if not any(candidate.label == 1 for question in questions for candidate in question.candidates):
                raise DataError("no candidate is marked right (label 1)", path)
            write_rows(folder / f"{name}.jsonl", map(question_row, questions))
            sizes[_QUESTIONS[name]] = len(questions)
        write_text(about, json.dumps(sizes) + "\n")
    found: dict[str, int] = json.loads(about.read_text(encoding="utf-8"))
    return found
