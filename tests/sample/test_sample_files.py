"""The sample as files."""

from __future__ import annotations

import json
from pathlib import Path

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
