"""BM25 and Cap-Zhao through the commands, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_command import run_command

TINY_CAP_ZHAO = (
    "--set=variant=A",
    "--set=embedding_size=8",
    "--set=filters=4",
    "--set=channels=2",
    "--set=capsule_size=4",
    "--set=max_tokens=20",
    "--set=epochs=1",
)


@pytest.mark.parametrize(("name", "settings"), [("bm25", ()), ("cap-zhao", TINY_CAP_ZHAO)])
def test_train_evaluate_and_predict(
    name: str, settings: tuple[str, ...], sample: Path, tmp_path: Path
) -> None:
    train, dev = sample / "questions-train.jsonl", sample / "questions-dev.jsonl"
    model = tmp_path / "model"
    trained = run_command(
        "train", train, "--dev", dev, "--task", "answers", "--model", name, "--output", model, *settings
    )
    assert (trained.code, trained.out) == (0, "")
    assert ("bm25 has no weights to train" in trained.err) == (name == "bm25")
    evaluated = run_command("evaluate", model, dev, "--json", tmp_path / "figures.json")
    assert evaluated.code == 0
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    facts = json.loads((model / "facts.json").read_text(encoding="utf-8"))
    assert figures["MAP"] == pytest.approx(facts["dev"]["MAP"])
    predicted = run_command("predict", model, dev)
    assert predicted.code == 0
    rows = [json.loads(line) for line in predicted.out.splitlines()]
    assert len(rows) == 8
    for row in rows:
        scores = [entry["score"] for entry in row["ranking"]]
        assert scores == sorted(scores, reverse=True)


def test_bm25_finds_the_answer_that_repeats_the_rare_word(tmp_path: Path) -> None:
    names = ["anna", "bruno", "clara", "dora", "emil"]
    rows = [
        {
            "question": f"where does {name} live ?",
            "candidates": [
                {"text": f"the house of {other} is by the sea", "label": int(other == name)}
                for other in names
            ],
        }
        for name in names
    ]
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out = tmp_path / "model"
    trained = run_command("train", data, "--task", "answers", "--model", "bm25", "--output", out, "-q")
    assert (trained.code, trained.err) == (0, "")
    predicted = run_command("predict", out, data)
    best = [json.loads(line)["ranking"][0]["answer"] for line in predicted.out.splitlines()]
    assert best == [f"the house of {name} is by the sea" for name in names]
