"""A data set as compact arrays, sufficient to train and report without the texts.

FOLDER/
train.safetensors    select.safetensors    report.safetensors     token and label ids
tokenizer.json       labels.json           vectors.safetensors    vocabulary, labels, word vectors
about.json           the source of the data
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from nlpcapsule.atomic_files import write_text
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import DataError
from nlpcapsule.lexical.neighbours import ragged_arrays, ragged_from_arrays


@dataclass(frozen=True)
class EncodedParts:
    """Training documents, documents to select on and documents to report on.

    Attributes:
        name: The data set's name.
        tokenizer: Trained on `train`.
        labels: The labels of `train`.
        train: Documents to learn weights on.
        select: Documents to choose epochs, settings and thresholds on.
        report: Documents to report metrics on; nothing is chosen on them.
        vectors: (V, v) float32 word vectors, or None.
    """

    name: str
    tokenizer: WordTokenizer
    labels: LabelVocabulary
    train: EncodedDocuments
    select: EncodedDocuments
    report: EncodedDocuments
    vectors: np.ndarray | None

    def fingerprint(self) -> str:
        """Return a hash of all documents and labels."""
        return "-".join(part.fingerprint() for part in (self.train, self.select, self.report))

    def cut(self, length: int) -> EncodedParts:
        """Return the documents truncated to a number of tokens.

        Special tokens that the tokenizer adds stay at both ends, as if the text had been encoded with
        `max_tokens=length`.
        """
        train, select, report = (
            EncodedDocuments(_cut(part.tokens, length, self.tokenizer), part.labels)
            for part in (self.train, self.select, self.report)
        )
        return replace(self, train=train, select=select, report=report)

    def save(self, folder: Path) -> None:
        """Write the folder; word vectors are stored as float16."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("train", "select", "report"):
            save_documents(getattr(self, name), folder / f"{name}.safetensors")
        write_text(folder / "tokenizer.json", self.tokenizer.to_json())
        write_text(folder / "labels.json", self.labels.to_json())
        if self.vectors is not None:
            save_file({"vectors": self.vectors.astype(np.float16)}, folder / "vectors.safetensors")
        about = {"name": self.name, "fingerprint": self.fingerprint()}
        write_text(folder / "about.json", json.dumps(about, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> EncodedParts:
        """Read the output of `save`."""
        if not (folder / "about.json").exists():
            raise DataError("not a folder of encoded documents (about.json is missing)", folder)
        vectors = None
        if (folder / "vectors.safetensors").exists():
            vectors = load_file(folder / "vectors.safetensors")["vectors"].astype(np.float32)
        return cls(
            json.loads((folder / "about.json").read_text(encoding="utf-8"))["name"],
            WordTokenizer.from_file(folder / "tokenizer.json"),
            LabelVocabulary.from_json((folder / "labels.json").read_text(encoding="utf-8")),
            load_documents(folder / "train.safetensors"),
            load_documents(folder / "select.safetensors"),
            load_documents(folder / "report.safetensors"),
            vectors,
        )


def save_documents(documents: EncodedDocuments, path: Path) -> None:
    """Write a safetensors file; token ids take two bytes where they fit."""
    labels = {"labels": documents.labels.values, "label_offsets": documents.labels.offsets}
    save_file({**ragged_arrays(documents.tokens), **labels}, path)


def load_documents(path: Path) -> EncodedDocuments:
    """Read the output of `save_documents`."""
    arrays = load_file(path)
    labels = Ragged(arrays["labels"], arrays["label_offsets"])
    return EncodedDocuments(ragged_from_arrays(arrays), labels)


def _cut(tokens: Ragged, length: int, tokenizer: WordTokenizer) -> Ragged:
    """Truncate rows to `length` tokens: [CLS] t_1 … t_n [SEP]  →  [CLS] t_1 … t_(length-2) [SEP]."""
    before, behind = _marks(tokenizer)
    if not behind:
        return tokens.cut(length)
    kept = max(length - behind, before)

    def shortened(row: np.ndarray) -> np.ndarray:
        return row if len(row) <= length else np.concatenate([row[:kept], row[-behind:]])[:length]

    return Ragged.from_rows(shortened(row) for row in tokens)


def _marks(tokenizer: WordTokenizer) -> tuple[int, int]:
    """Return how many special tokens a tokenizer adds before and after a text."""
    empty, word = (ids.tolist() for ids in tokenizer.encode(["", "a"], max_tokens=8))
    if empty == [tokenizer.unknown_id]:  # the encoding of an empty text without special tokens
        return 0, 0
    pairs = enumerate(zip(empty[::-1], word[::-1], strict=False))
    behind = next((place for place, (mark, token) in pairs if mark != token), len(empty))
    return len(empty) - behind, behind
