"""eurlex15k: EURLEX57K cut to the size of the paper's EUR-Lex.

Trained on 15,449 documents of its training part; epochs and thresholds are selected on the dev documents
outside the report part, figures are reported on the 3,865 dev documents of the report part.
"""

from __future__ import annotations

import json
from pathlib import Path

from nlpcapsule.config import Config
from nlpcapsule.dataset.encoded import encode_documents
from nlpcapsule.errors import DataError
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.text.document_files import read_documents
from nlpcapsule.training.prepared_labels import prepare_labels


def prepare_eurlex15k(data: Path, max_tokens: int = 1_000) -> EncodedParts:
    """Tokenises the three parts.

    Args:
        data: The folder with `eurlex57k/` and `vectors/`.
        max_tokens: Words kept per document; a run may use fewer.
    """
    source = data / "eurlex57k"
    if not source.is_dir():
        raise DataError("expected a folder that holds eurlex57k/", data)
    ids = json.loads((source / "eurlex15k_ids.json").read_text(encoding="utf-8"))
    train_ids, report_ids = set(ids["train"]), set(ids["test"])
    train = [row for row in read_documents(source / "train.jsonl.gz") if row.id in train_ids]
    held_out = list(read_documents(source / "dev.jsonl.gz"))
    select = [row for row in held_out if row.id not in report_ids]
    report = [row for row in held_out if row.id in report_ids]
    vectors = str(data / "vectors" / "glove.6B.100d.trimmed.txt.gz")
    config = Config.build(overrides={"max_tokens": max_tokens, "vectors": vectors})
    prepared = prepare_labels(train, select, config)
    assert prepared.dev is not None
    return EncodedParts(
        "eurlex15k",
        prepared.tokenizer,
        prepared.labels,
        prepared.train,
        prepared.dev,
        encode_documents(report, prepared.tokenizer, prepared.labels, max_tokens),
        prepared.vectors,
    )
