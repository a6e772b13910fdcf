"""A data set of a few letters, and made-up folders in the layout of the real data."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.answer_data import AnswerParts
from benchmarks.cell import Cell
from benchmarks.encoded_parts import EncodedParts
from nlpcapsule.config import Config
from nlpcapsule.data.documents import Question
from nlpcapsule.data.encoded import encode_documents
from nlpcapsule.sample import load_documents, load_questions
from nlpcapsule.training.prepared_labels import prepare_labels

EURLEX_REPORT = ("dev1", "dev4")
REUTERS_TRAIN, REUTERS_TEST = 20, 4


def tiny_parts(vectors: bool = True) -> EncodedParts:
    config = Config.build(overrides={"max_tokens": 30})
    data = prepare_labels(load_documents("train")[:60], load_documents("dev")[:20], config)
    report = encode_documents(load_documents("test-seen")[:24], data.tokenizer, data.labels, 30)
    table = np.random.default_rng(0).normal(size=(data.tokenizer.size, 8)).astype(np.float32)
    return EncodedParts(
        "letters", data.tokenizer, data.labels, data.train, data.dev, report, table if vectors else None
    )


def tiny_answers() -> AnswerParts:
    report = {"clean": load_questions("test")[:6], "raw": load_questions("test")[:8]}
    return AnswerParts(load_questions("train")[:16], load_questions("dev")[:5], report, None)


def write_eurlex(data: Path) -> None:
    """EURLEX57K with eight training and six dev documents; a document's number is that of "fish" in it."""
    source = data / "eurlex57k"
    source.mkdir(parents=True)
    for part, count in (("train", 8), ("dev", 6)):
        rows = (
            {
                "id": f"{part}{number}",
                "title": "act",
                "text": "milk" + " fish" * number,
                "labels": [f"concept{number % 2}", "unmapped"],
            }
            for number in range(count)
        )
        write_jsonl(source / f"{part}.jsonl.gz", rows)
    ids = {"train": [f"train{number}" for number in range(5)], "test": list(EURLEX_REPORT)}
    (source / "eurlex15k_ids.json").write_text(json.dumps(ids), encoding="utf-8")
    thesauri = {"concept0": "5206", "concept1": "1006", "elsewhere": "3606"}
    path = source / "concept_to_microthesaurus.json.gz"
    path.write_bytes(gzip.compress(json.dumps(thesauri).encode()))


def write_reuters(data: Path) -> None:
    """Reuters-21578's ModApte split; a document's number is that of "fish" in it."""
    source = data / "reuters21578"
    source.mkdir(parents=True)
    for part, count in (("train", REUTERS_TRAIN), ("test", REUTERS_TEST)):
        rows = (
            {"id": f"{part}{number}", "text": "milk" + " fish" * number, "labels": ["wheat"]}
            for number in range(count)
        )
        write_jsonl(source / f"modapte90.{part}.jsonl.gz", rows)


def write_trecqa(data: Path) -> None:
    """TREC QA with twenty training questions, eight dev questions, six of them clean."""
    (data / "trecqa").mkdir(parents=True)
    for part, questions in {
        "train-all": load_questions("train")[:20],
        "dev-raw": load_questions("dev")[:8],
        "dev-clean": load_questions("dev")[:6],
    }.items():
        write_tsv(data / "trecqa" / f"{part}.tsv.gz", questions)


def write_vectors(data: Path, size: int = 100) -> None:
    """A file of word vectors with two words."""
    (data / "vectors").mkdir(parents=True)
    with gzip.open(data / "vectors" / "glove.6B.100d.trimmed.txt.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{word} " + " ".join(["0.5"] * size) + "\n" for word in ("fish", "the"))


def write_jsonl(path: Path, rows: Iterable[dict]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_tsv(path: Path, questions: Iterable[Question]) -> None:
    rows = [
        f"{number}\t{question.text}\t{candidate.text}\t{candidate.label}\n"
        for number, question in enumerate(questions)
        for candidate in question.candidates
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(["qid\tquestion\tanswer\tlabel\n", *rows])


def tiny_cell(system, **settings):
    """A cell of a small hybrid, on the data set "letters"."""
    sizes = {"embedding_size": 8, "filters": 8, "condensed": 4, "capsule_size": 8, "document_size": 8}
    words = {"lexical": "one-vs-rest", "training.epochs": 1, "max_tokens": 30}
    return Cell("labels", "letters", system, "hybrid", {**settings, **words, **sizes}, seed=1)
