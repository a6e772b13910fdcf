"""Threads and processes that predict from one folder at once get what one process gets alone."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from nlpcapsule import CapsuleClassifier, load
from nlpcapsule.sample import load_documents

pytestmark = pytest.mark.slow

PROCESSES, THREADS = 4, 8
DOCUMENTS = load_documents("train")[:100]
TEXTS = [document.text for document in DOCUMENTS]


@pytest.fixture(scope="module", params=["hybrid", "one-vs-rest"])
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("processes")
    small = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4, "document_size": 8}
    settings = small | {"lexical": "one-vs-rest"} if request.param == "hybrid" else {}
    classifier = CapsuleClassifier(request.param, epochs=1, settings=settings)
    classifier.fit(TEXTS, [document.labels for document in DOCUMENTS]).save(place / "model")
    rows = (json.dumps({"text": text}) + "\n" for text in TEXTS)
    (place / "texts.jsonl").write_text("".join(rows), encoding="utf-8")
    return place


def start(folder, number):
    files = [str(folder / "model"), str(folder / "texts.jsonl")]
    command = [sys.executable, "-m", "nlpcapsule.cli.app", "predict", *files, "--quiet"]
    return subprocess.Popen([*command, "--output", str(folder / f"{number}.jsonl")])


def test_processes_and_threads_at_once_get_what_one_process_gets(folder):
    assert start(folder, "alone").wait(120) == 0
    expected = (folder / "alone.jsonl").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    ranked = load(folder / "model").rank(TEXTS, 5)

    processes = [start(folder, number) for number in range(PROCESSES)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: load(folder / "model").rank(TEXTS, 5), range(THREADS)))
    assert [process.wait(300) for process in processes] == [0] * PROCESSES
    for number in range(PROCESSES):
        assert (folder / f"{number}.jsonl").read_bytes() == expected
    assert found == [ranked] * THREADS
    assert before == {path: path.stat().st_mtime_ns for path in before}, "reading changes nothing"
