"""The real files, where they are at hand: set NLPCAPSULE_DATA, or put them in ../shared/data."""

import os
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadReport

DATA = Path(os.environ.get("NLPCAPSULE_DATA") or Path(__file__).parents[3] / "shared" / "data")


def real(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in {DATA}; set NLPCAPSULE_DATA to the folder that holds it")
    return path


def test_all_of_eurlex57k_train_streams():
    report = ReadReport()
    labels = set()
    assignments = 0
    for document in read_documents(real("eurlex57k/train.jsonl.gz"), report=report):
        labels.update(document.labels)
        assignments += len(document.labels)
    assert (report.rows, report.bad_rows) == (45_000, 0)
    assert len(labels) == 4_108
    assert assignments / report.rows == pytest.approx(5.07, abs=0.005)


def test_eurlex57k_needs_no_more_memory_for_more_documents():
    documents = read_documents(real("eurlex57k/train.jsonl.gz"))
    tracemalloc.start()
    try:
        assert sum(1 for _ in islice(documents, 1_000)) == 1_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        documents.close()
    assert peak < 20_000_000


def test_trecqa_counts():
    report = ReadReport()
    questions = list(read_questions(real("trecqa/train-all.tsv.gz"), report=report))
    pairs = [candidate for question in questions for candidate in question.candidates]
    assert (len(questions), len(pairs), report.bad_rows) == (1_229, 53_417, 0)
    assert sum(candidate.label or 0 for candidate in pairs) / len(pairs) == pytest.approx(0.12, abs=0.0005)


@pytest.mark.parametrize(("name", "count"), [("dev-raw", 81), ("dev-clean", 65)])
def test_trecqa_dev_counts(name, count):
    assert sum(1 for _ in read_questions(real(f"trecqa/{name}.tsv.gz"))) == count


@pytest.mark.parametrize(("part", "count"), [("train", 7_770), ("test", 3_019)])
def test_reuters_modapte90_counts(part, count):
    report = ReadReport()
    topics = set()
    for document in read_documents(real(f"reuters21578/modapte90.{part}.jsonl.gz"), report=report):
        topics.update(document.labels)
    assert (report.rows, report.unlabelled, len(topics)) == (count, 0, 90)
