"""The sample as files: formats, and the same bytes for the same seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nlpcapsule
from nlpcapsule.sample import load_documents, load_questions, write_sample


def test_every_part_becomes_a_file_in_its_format(tmp_path: Path) -> None:
    paths = write_sample(tmp_path / "new" / "folder")
    assert sorted(path.name for path in paths.values()) == [
        "documents-dev.jsonl",
        "documents-test-seen.jsonl",
        "documents-test-unseen.jsonl",
        "documents-train.jsonl",
        "questions-dev.jsonl",
        "questions-test.jsonl",
        "questions-train.jsonl",
    ]
    rows = [json.loads(line) for line in paths["documents-dev"].read_text(encoding="utf-8").splitlines()]
    documents = load_documents("dev")
    assert [(row["id"], row["text"], tuple(row["labels"])) for row in rows] == [
        (document.id, document.text, document.labels) for document in documents
    ]
    rows = [json.loads(line) for line in paths["questions-test"].read_text(encoding="utf-8").splitlines()]
    first = load_questions("test")[0]
    assert rows[0]["question"] == first.text
    assert rows[0]["candidates"] == [{"text": c.text, "label": c.label} for c in first.candidates]


def test_other_seed_yields_other_files(tmp_path: Path) -> None:
    usual = write_sample(tmp_path / "usual")
    other = write_sample(tmp_path / "other", seed=7)
    for name in usual:
        assert usual[name].read_bytes() != other[name].read_bytes(), name


def test_same_seed_yields_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    """Another process with another hash seed: no set's order may leak into the sample."""
    here = write_sample(tmp_path / "here")
    source = str(Path(nlpcapsule.__path__[0]).parent)
    code = "import sys; from pathlib import Path; from nlpcapsule.sample import write_sample; "
    code += "write_sample(Path(sys.argv[1]))"
    environment = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": source}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], check=True, env=environment)
    for path in here.values():
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes(), path.name
