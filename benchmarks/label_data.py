"""The label data sets: read from the folder of real data, or made from the embedded sample.

eurlex15k       15,449 documents of EURLEX57K's training part; selected on the 2,135 dev documents outside the
                report part, reported on its 3,865
eurlex57k       all of EURLEX57K: 42,000 training documents, selected on a seeded 3,000 others of its training
                part, reported on the 6,000 of its dev part
microthesauri   eurlex15k's documents, EuroVoc concepts replaced by their micro-thesauri: few labels, many
                documents for each
reuters         Reuters-21578, ModApte; selected on a seeded tenth of train, reported on test
sample          the embedded letters, reported on the phrasings that training never saw

NAME-minilm     any of them in the word pieces of MiniLM, for networks that it encodes documents for
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.encoded_parts import EncodedParts
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.errors import ConfigError, DataError, did_you_mean
from nlpcapsule.sample import load_documents
from nlpcapsule.training.preparation import hold_out
from nlpcapsule.training.prepared_labels import prepare_labels

MAX_TOKENS = 1_000  # words kept per document; a system may read fewer
MAX_PIECES = 1_536  # word pieces, likewise
MINILM = "all-MiniLM-L6-v2"  # its folder, next to the data
IN_PIECES = "-minilm"
_SPLIT_SEED = 2019
_SELECTED_ON = 0.1  # of reuters' training part
_SELECTED_ON_57K = 3_000 / 45_000  # of EURLEX57K's

Split = tuple[list[Document], list[Document], list[Document]]  # train, select, report


def label_parts(name: str, data: Path | None, cache: Path) -> EncodedParts:
    """Return a data set as arrays, which are cached.

    Args:
        name: Its name.
        data: The folder of real data, or one with encoded parts in a folder of this name.
        cache: Folder for cached arrays.
    """
    for folder in ([] if data is None else [data / name]) + [cache / name]:
        if (folder / "about.json").exists():
            return EncodedParts.load(folder)
    parts = _encoded(name, data)
    _keep(parts, cache / name)
    return parts


def _keep(parts: EncodedParts, folder: Path) -> None:
    """Save arrays atomically: several processes may prepare the same data set."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as temporary:
        made = Path(temporary) / folder.name
        parts.save(made)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "about.json").exists():
                raise


def _encoded(name: str, data: Path | None) -> EncodedParts:
    in_pieces = name.endswith(IN_PIECES)
    base = name.removesuffix(IN_PIECES)
    vectors = None
    if base == "sample":
        train, select, report = (load_documents(part) for part in ("train", "dev", "test-unseen"))
    else:
        if data is None:
            raise DataError(f"{name} is not embedded: name its folder with --data")
        if base not in READERS:
            raise ConfigError(f"there is no data set {name!r}: {did_you_mean(base, READERS)}")
        train, select, report = READERS[base](data)
        vectors = str(data / "vectors" / "glove.6B.100d.trimmed.txt.gz")
    settings: dict[str, Any] = {"max_tokens": MAX_TOKENS, "vectors": vectors}
    if in_pieces:
        settings = {"max_tokens": MAX_PIECES, "encoder": str(_folder(data or Path(), MINILM))}
    config = Config.build(overrides=settings)
    prepared = prepare_labels(train, select, config)
    assert prepared.dev is not None
    encoded = encode_documents(report, prepared.tokenizer, prepared.labels, config.text.max_tokens)
    return EncodedParts(
        name,
        prepared.tokenizer,
        prepared.labels,
        prepared.train,
        prepared.dev,
        encoded,
        prepared.vectors,
    )


def _eurlex15k(data: Path) -> Split:
    source = _folder(data, "eurlex57k")
    ids = json.loads((source / "eurlex15k_ids.json").read_text(encoding="utf-8"))
    train_ids, report_ids = set(ids["train"]), set(ids["test"])
    train = [row for row in read_documents(source / "train.jsonl.gz") if row.id in train_ids]
    held_out = list(read_documents(source / "dev.jsonl.gz"))
    select = [row for row in held_out if row.id not in report_ids]
    return train, select, [row for row in held_out if row.id in report_ids]


def _eurlex57k(data: Path) -> Split:
    source = _folder(data, "eurlex57k")
    documents = list(read_documents(source / "train.jsonl.gz"))
    train, select = hold_out(documents, _SELECTED_ON_57K, _SPLIT_SEED)
    return train, select, list(read_documents(source / "dev.jsonl.gz"))


def _microthesauri(data: Path) -> Split:
    path = _folder(data, "eurlex57k") / "concept_to_microthesaurus.json.gz"
    thesaurus_of = json.loads(gzip.decompress(path.read_bytes()))

    def relabelled(documents: Iterable[Document]) -> list[Document]:
        return [
            replace(row, labels=tuple(sorted({thesaurus_of[x] for x in row.labels if x in thesaurus_of})))
            for row in documents
        ]

    train, select, report = _eurlex15k(data)
    return relabelled(train), relabelled(select), relabelled(report)


def _reuters(data: Path) -> Split:
    source = _folder(data, "reuters21578")
    train, select = hold_out(
        list(read_documents(source / "modapte90.train.jsonl.gz")), _SELECTED_ON, _SPLIT_SEED
    )
    return train, select, list(read_documents(source / "modapte90.test.jsonl.gz"))


def _folder(data: Path, name: str) -> Path:
    if not (data / name).is_dir():
        raise DataError(f"expected a folder that holds {name}/", data)
    return data / name


READERS: dict[str, Callable[[Path], Split]] = {
    "eurlex15k": _eurlex15k,
    "eurlex57k": _eurlex57k,
    "microthesauri": _microthesauri,
    "reuters": _reuters,
}
