"""Generated data keep what they state, and what a process takes of the machine is measured."""

import subprocess
import sys
from collections import Counter

from benchmarks.generated import GeneratedLabels
from benchmarks.speed.usage import Usage
from nlpcapsule.data.readers.document_files import read_documents

DATA = GeneratedLabels(labels=400, documents=1_200)


def test_every_label_has_a_document_and_frequent_labels_have_many():
    counts = Counter(label for document in DATA for label in document.labels)
    assert len(counts) == DATA.labels
    assert sorted(counts.values())[0] < 5 < 100 < max(counts.values())
    mean = sum(counts.values()) / DATA.documents
    assert abs(mean - DATA.labels_per_document) < 0.3


def test_written_documents_are_those_generated(tmp_path):
    DATA.write(tmp_path / "train.jsonl")
    assert list(read_documents(tmp_path / "train.jsonl")) == list(DATA)


def test_other_documents_are_further_ones_of_the_same_labels():
    others = DATA.others(1_100)
    known = {label for document in DATA for label in document.labels}
    assert {label for document in others for label in document.labels} <= known
    assert not {document.id for document in DATA} & {document.id for document in others}
    texts = {document.text for document in DATA}
    assert not any(document.text in texts for document in others)


def test_usage_counts_the_memory_and_cpu_time_of_children():
    child = (
        "import time; kept = bytearray(200 * 2**20); end = time.process_time() + 1\n"
        "while time.process_time() < end: pass\n"
        "time.sleep(1.5)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent])
    usage = Usage(process.pid)
    process.wait()
    machine = usage.stop()
    assert usage.peak_memory > 200 * 2**20
    assert 0.9 < usage.cpu_seconds < 10
    assert 0 < machine["cores_used"] <= machine["cores"]
