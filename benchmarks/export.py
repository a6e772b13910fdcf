"""Write the label data sets of the paper's tables as folders that `nlpcapsule compare --data` reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from benchmarks.label_data import READERS as PUBLISHED
from nlpcapsule.errors import ConfigError, did_you_mean


def write_folder(name: str, data: Path, out: Path, first: int | None = None) -> dict[str, int]:
    """Write train.jsonl.gz, dev.jsonl.gz (to select on) and test.jsonl.gz (to report on).

    Args:
        name: The data set.
        data: The folder of real data.
        out: The folder to write.
        first: Documents of each part; None for all.

    Returns:
        Part → number of documents.
    """
    if name not in PUBLISHED:
        raise ConfigError(f"there is no data set {name!r}: {did_you_mean(name, PUBLISHED)}")
    parts = dict(zip(("train", "dev", "test"), PUBLISHED[name](data), strict=True))
    out.mkdir(parents=True, exist_ok=True)
    for part, documents in parts.items():
        with gzip.open(out / f"{part}.jsonl.gz", "wt", encoding="utf-8", compresslevel=6) as file:
            for document in documents[:first]:
                row = {"id": document.id, "text": document.text, "labels": list(document.labels)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {part: len(documents[:first]) for part, documents in parts.items()}
