"""Write the label data sets of the paper's tables as folders that `nlpcapsule compare --data` reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.label_data import READERS as PUBLISHED
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import ConfigError, did_you_mean

_SEED = 2019  # of a sample


def write_folder(name: str, data: Path, out: Path, sample: int | None = None) -> dict[str, int]:
    """Write train.jsonl.gz, dev.jsonl.gz (to select on) and test.jsonl.gz (to report on).

    Args:
        name: The data set.
        data: The folder of real data.
        out: The folder to write.
        sample: Documents of each part at most, drawn uniformly and kept in their order; None for all.

    Returns:
        Part → number of documents.
    """
    if name not in PUBLISHED:
        raise ConfigError(f"there is no data set {name!r}: {did_you_mean(name, PUBLISHED)}")
    drawn = (_drawn(documents, sample) for documents in PUBLISHED[name](data))
    parts = dict(zip(("train", "dev", "test"), drawn, strict=True))
    out.mkdir(parents=True, exist_ok=True)
    for part, documents in parts.items():
        with gzip.open(out / f"{part}.jsonl.gz", "wt", encoding="utf-8", compresslevel=6) as file:
            for document in documents:
                row = {"id": document.id, "text": document.text, "labels": list(document.labels)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {part: len(documents) for part, documents in parts.items()}


def _drawn(documents: Sequence[Document], count: int | None) -> Sequence[Document]:
    if count is None or count >= len(documents):
        return documents
    rows = np.random.default_rng(_SEED).permutation(len(documents))[:count]
    return [documents[row] for row in np.sort(rows)]
