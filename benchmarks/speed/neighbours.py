"""Search similar documents among many: through the index, and by comparing all."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.generated import GeneratedLabels
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import GrowingRows
from nlpcapsule.lexical.many_labels.inverted_index import InvertedIndex
from nlpcapsule.lexical.neighbours import SHARPNESS, Neighbours


def speed_of_neighbours(data: GeneratedLabels, asked: int) -> list[dict[str, Any]]:
    """Search for generated documents among others; return a row for the index and one for all documents.

    Args:
        data: The training documents.
        asked: Further documents that are searched for.
    """
    train, test = _encoded(data), _encoded(data.others(asked))
    words = 2 + data.vocabulary + data.vocabulary // 10
    fitted = Neighbours.fit(train, words, data.labels)
    indexed = replace(fitted, index=fitted.index or InvertedIndex.of_documents(fitted.documents))
    rows = [_measured("index", indexed, test), _measured("all documents", replace(fitted, index=None), test)]
    for row in rows:
        row["same_nearest"] = float(np.mean(row["nearest"] == rows[1]["nearest"]))
    return [{name: value for name, value in row.items() if name != "nearest"} for row in rows]


def _measured(system: str, neighbours: Neighbours, test: EncodedDocuments) -> dict[str, Any]:
    neighbours.nearest(test.tokens.slice(0, 1))  # builds what is built once
    began, cpu = time.perf_counter(), time.process_time()
    best, cosines = neighbours.nearest(test.tokens)
    spent, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {
        "system": system,
        "milliseconds": 1000 * spent / len(test),
        "cpu_milliseconds": 1000 * cpu / len(test),
        "precision_at_1": float(np.mean(_hits(neighbours, best, cosines, test))),
        "nearest": best[:, 0],
    }


def _hits(
    neighbours: Neighbours, best: np.ndarray, cosines: np.ndarray, test: EncodedDocuments
) -> list[bool]:
    """Return whether the label with the largest share of the neighbours (N, K) is one of a document's."""
    count, width = best.shape
    weights = cosines.astype(np.float64) ** SHARPNESS
    chosen = sparse.csr_matrix(
        (weights.ravel(), best.ravel(), np.arange(0, count * width + 1, width)),
        shape=(count, neighbours.documents.shape[0]),
    )
    first = np.asarray((chosen @ neighbours.labels).argmax(axis=1)).ravel()
    return [bool(label in own) for label, own in zip(first, test.labels, strict=True)]


def _encoded(data: GeneratedLabels) -> EncodedDocuments:
    """Return generated documents as token ids: topic words, then common words."""
    tokens, labels = GrowingRows(), GrowingRows()
    firsts = {"t": 2, "c": 2 + data.vocabulary}
    for document in data:
        tokens.append([firsts[word[0]] + int(word[1:]) for word in document.text.split()])
        labels.append(_numbers(document))
    return EncodedDocuments(tokens.ragged(), labels.ragged())


def _numbers(document: Document) -> list[int]:
    return [int(label.removeprefix("label-")) for label in document.labels]
