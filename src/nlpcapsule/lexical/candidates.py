"""Keep the labels nominated for many documents on disk, and measure how many true labels they hold."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.lib.format import open_memmap

from nlpcapsule.atomic_files import atomic_path
from nlpcapsule.data.ragged import Ragged

# Gets tokens and a count; returns labels (N, C), best first, and their scores (N, C).
Nominate: TypeAlias = Callable[[Ragged, int], tuple[np.ndarray, np.ndarray]]

LOW_RECALL = 0.9  # below it, candidates limit what a network can reach
_DOCUMENTS_AT_A_TIME = 32_768  # that processes share


def nominate_to_file(nominate: Nominate, tokens: Ragged, count: int, path: Path) -> np.ndarray:
    """Return the candidates (N, C) int32 of documents, which stay in a file: memory holds what is read.

    `count` is C, at most the number of labels. An earlier file is replaced.
    """
    with atomic_path(path) as temporary:
        file = open_memmap(temporary, mode="w+", dtype=np.int32, shape=(len(tokens), count))
        for start in range(0, len(tokens), _DOCUMENTS_AT_A_TIME):
            end = min(start + _DOCUMENTS_AT_A_TIME, len(tokens))
            file[start:end] = nominate(tokens.slice(start, end), count)[0]
        file.flush()
    return np.load(path, mmap_mode="r", allow_pickle=False)


def candidate_recall(candidates: np.ndarray, truth: Ragged, label_count: int) -> float | None:
    """Return the share of the documents' known labels that are among their candidates (N, C).

    Labels from `label_count` upwards, which training never saw, are left out; None if there are no others.
    """
    known = found = 0
    for row, labels in zip(candidates, truth, strict=True):
        own = labels[labels < label_count]
        known += len(own)
        found += int(np.isin(own, row).sum())
    return found / known if known else None
