"""`predict --explain` adds why to each line, and changes nothing else."""

import json

import pytest
from run_command import run_command


def rows_of(*arguments):
    done = run_command("predict", *arguments, "--quiet")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def check_places(words, text):
    for word in words:
        assert {text[start:end].lower() for start, end in word["spans"]} == {word["word"].lower()}


def test_labels_are_explained(label_model, sample):
    path = sample / "documents-dev.jsonl"
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    plain, explained = (rows_of(label_model, path, "--top-k", 2, *more) for more in ((), ("--explain",)))
    for row, other, text in zip(explained, plain, texts, strict=True):
        found = row.pop("explanation")["labels"]
        assert [label["label"] for label in found] == [label["label"] for label in row["labels"]]
        for label in found:
            check_places(label["words"], text)
        assert row == other


def test_answers_are_explained(answer_model, sample):
    path = sample / "questions-dev.jsonl"
    plain, explained = (rows_of(answer_model, path, "--top-k", 2, *more) for more in ((), ("--explain",)))
    for row, other in zip(explained, plain, strict=True):
        for answer in row["ranking"]:
            found = answer.pop("explanation")
            assert found["probability"] == pytest.approx(answer["score"], abs=1e-4)
            check_places(found["question_words"], row["question"])
            check_places(found["answer_words"], answer["answer"])
        assert row == other


def test_a_threshold_that_no_answer_reaches_leaves_nothing_to_explain(answer_model, sample):
    rows = rows_of(answer_model, sample / "questions-dev.jsonl", "--threshold", 1, "--explain")
    assert [row["ranking"] for row in rows] == [[]] * 8
