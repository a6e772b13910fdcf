"""`train --label-names` and what `predict` then says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_command import TINY, assert_refused, run_command


def write_names(sample: Path, folder: Path) -> Path:
    """Names for the letters' labels, and one label that no letter has."""
    rows = (sample / "documents-train.jsonl").read_text(encoding="utf-8").splitlines()
    labels = {label for row in rows for label in json.loads(row)["labels"]}
    lines = [f"{label}\t{label.replace('-', ' ')}" for label in sorted(labels)]
    path = folder / "names.tsv"
    path.write_text("\n".join(["label\tname", *lines, "zebra-loose\tzebra on the loose"]) + "\n")
    return path


def test_a_label_that_is_only_named_is_predicted_with_its_name(sample: Path, tmp_path: Path) -> None:
    names, model = write_names(sample, tmp_path), tmp_path / "model"
    train = sample / "documents-train.jsonl"
    done = run_command(
        "train", train, "--label-names", names, "--output", model, "-q", *TINY, "--model=label-query"
    )
    assert (done.code, done.err) == (0, "")
    text = b'{"text": "A zebra is on the loose."}'
    done = run_command("predict", model, "-", "--format", "jsonl", "--top-k", "500", stdin=text)
    labels = json.loads(done.out)["labels"]
    found = {row["label"]: row["name"] for row in labels}
    assert found["zebra-loose"] == "zebra on the loose"
    assert found["pothole"] == "pothole"
    assert list(labels[0]) == ["label", "name", "score"]


@pytest.mark.parametrize("system", ["--model=label-query", "--set=lexical=one-vs-rest"])
def test_labels_that_nobody_has_used_can_be_asked_for(sample: Path, tmp_path: Path, system: str) -> None:
    names, model = write_names(sample, tmp_path), tmp_path / "model"
    with names.open("a") as file:
        file.write("comet-seen\tcomet in the sky\n")
    train = sample / "documents-train.jsonl"
    done = run_command("train", train, "--label-names", names, "--output", model, "-q", *TINY, system)
    assert (done.code, done.err) == (0, "")
    text = b'{"text": "A bin is full.", "labels": ["zebra-loose"]}'
    done = run_command("predict", model, "-", "--format=jsonl", "--top-k=1", "--suggest-unseen=5", stdin=text)
    answer = json.loads(done.out)
    assert len(answer["labels"]) == 1
    assert {row["label"]: row["name"] for row in answer["unseen"]} == {
        "zebra-loose": "zebra on the loose",
        "comet-seen": "comet in the sky",
    }
    scores = [row["score"] for row in answer["unseen"]]
    assert scores == sorted(scores, reverse=True)
    figures = tmp_path / "figures.json"
    letters = tmp_path / "letters.jsonl"
    letters.write_bytes(text)
    assert run_command("evaluate", model, letters, "--json", figures).code == 0
    assert json.loads(figures.read_text())["recall@5 among unused labels"] == 1.0


def test_a_model_without_unused_labels_says_so(label_model: Path) -> None:
    text = b'{"text": "A bin."}'
    done = run_command("predict", label_model, "-", "--format", "jsonl", "--suggest-unseen", "3", stdin=text)
    assert_refused(done, r"--suggest-unseen: the model knows no label.*--label-names")


def test_without_names_predictions_are_as_ever(label_model: Path) -> None:
    done = run_command("predict", label_model, "-", "--format", "jsonl", stdin=b'{"text": "A bin."}')
    assert list(json.loads(done.out)["labels"][0]) == ["label", "score"]


def test_a_file_that_is_not_there_is_refused_before_anything_is_written(sample: Path, tmp_path: Path) -> None:
    train, out = sample / "documents-train.jsonl", tmp_path / "model"
    done = run_command("train", train, "--label-names", "no-names.json", "--output", out, "-q", *TINY)
    assert_refused(done, r"no-names\.json: there is no such file")
    assert not out.exists()
