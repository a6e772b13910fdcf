"""The benchmark of `learn`: which labels are held back, and what is measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import learn_labels, tool_commands
from benchmarks.learn_labels import LearnBenchmark
from nlpcapsule import provenance
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import DataError, ModelFolderError, NlpCapsuleError

TOPICS = ["bridge", "cheese", "debt", "fish", "glass", "honey"]


def made_up(seed: int, count: int, rare: int = 8) -> list[Document]:
    """Texts on one of six topics, the first `rare` ones on a seventh too."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        labels = [str(generator.choice(TOPICS)), *(["lamp"] if number < rare else [])]
        words = [f"{label}{generator.integers(4)}" for label in labels for _ in range(5)]
        words.append(f"lamp{generator.integers(4)}")
        found.append(Document(" ".join(words), tuple(labels), f"{seed}-{number}"))
    return found


def test_held_back_labels_have_five_documents_and_none_in_the_first_training() -> None:
    held = learn_labels.hold_back(made_up(1, 100), made_up(2, 20), made_up(3, 20), 1)
    assert held.labels == {"lamp"}
    assert len(held.old) == 92, "documents with the label beyond the first five are left out"
    assert [document.labels[-1] for document in held.new] == ["lamp"] * 5
    assert not any("lamp" in document.labels for document in [*held.old, *held.select])
    assert sum("lamp" in document.labels for document in held.report) == 8
    with pytest.raises(DataError, match="only 1 labels can be held back, not 2"):
        learn_labels.hold_back(made_up(1, 100), [], made_up(3, 20), 2)


def test_the_benchmark_compares_learning_with_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = made_up(1, 100), made_up(2, 40), made_up(3, 40)
    monkeypatch.setitem(learn_labels.READERS, "tiny", lambda data: split)
    small = ["embedding_size=8", "filters=8", "capsule_size=8", "condensed=4", "epochs=2", "min_count=1"]
    benchmark = LearnBenchmark.read("tiny", tmp_path, tmp_path / "models", 1, None, small)
    record = benchmark.measure()
    assert record["report_positives"] == 8
    assert record["figures"]["before"]["new recall@5"] == 0
    assert record["figures"]["learned"]["new recall@5"] > 0.7
    low, high = record["figures"]["learned"]["new recall@5 interval"]
    assert low <= record["figures"]["learned"]["new recall@5"] <= high
    assert record["time_share"] == record["seconds"]["learn"] / record["seconds"]["scratch"]

    monkeypatch.setattr(learn_labels, "fit_labels", None)  # the models are there: none is trained again
    again = benchmark.measure()
    assert again["figures"] == record["figures"]
    assert again["seconds"]["scratch"] == record["seconds"]["scratch"]
    other = LearnBenchmark.read("tiny", tmp_path, tmp_path / "models", 1, None, [*small, "seed=2"])
    with pytest.raises(ModelFolderError, match="other data, with other settings or on other hardware"):
        other.measure()


def test_results_name_their_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "checked_out_commit", lambda: provenance.UNKNOWN_COMMIT)
    with pytest.raises(NlpCapsuleError, match="give it with --commit HASH or NLPCAPSULE_COMMIT"):
        tool_commands.faithfulness(tmp_path, tmp_path)
    monkeypatch.setattr("sys.argv", ["benchmarks", "load", "MODEL", "/data/a.jsonl", "--callers", "2"])
    tool_commands._write(tmp_path / "found.json", "abc", "letters", [1], {"errors": 0})
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["command"] == "python -m benchmarks load MODEL a.jsonl --callers 2"
    assert (found["commit"], found["data"], found["seeds"], found["errors"]) == ("abc", "letters", [1], 0)
