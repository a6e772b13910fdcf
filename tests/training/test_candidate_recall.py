"""Training measures how many labels of held-out documents are among their candidates, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_runs import some_documents, tiny_config

from nlpcapsule.model_folder import load_model
from nlpcapsule.scoring.models import LabelModel
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder

TRAIN, DEV = some_documents(120), some_documents(24, "dev")
LIMIT = "nlpcapsule.training.fit_labels.LOW_RECALL"


def train(folder: Path, candidates: int) -> tuple[LabelModel, list[str]]:
    """Train a hybrid; return the model in its folder, and what training said about candidates."""
    config = tiny_config(lexical="one-vs-rest", candidates=candidates)
    progress, said = TrainingProgress(quiet=True), list[str]()
    progress.say = said.append  # type: ignore[method-assign]
    fit_labels(prepare_labels(TRAIN, DEV, config), config, RunFolder(folder), progress)
    model = load_model(folder)
    assert isinstance(model, LabelModel)
    return model, [text for text in said if text.startswith(("candidates:", "warning:"))]


def expected_recall(model: LabelModel, candidates: int) -> float:
    """Count the held-out documents' known labels among all that the model ranks, by their ids."""
    known = {label for document in TRAIN for label in document.labels}
    assert not {label for document in DEV for label in document.labels} <= known, "some are unknown"
    found = count = 0
    for document, ranked in zip(DEV, model.rank([row.text for row in DEV], top_k=1000), strict=True):
        assert len({row.label for row in ranked}) == candidates
        own = known & set(document.labels)
        found += len(own & {row.label for row in ranked})
        count += len(own)
    return found / count


@pytest.mark.parametrize(("candidates", "is_low"), [(3, True), (90, False)])
def test_the_recall_of_candidates_is_said_and_saved_and_a_low_one_warned_of(tmp_path, candidates, is_low):
    model, said = train(tmp_path / "model", candidates)
    recall = expected_recall(model, candidates)
    assert (recall < 0.9) == is_low
    saved = json.loads((tmp_path / "model" / "facts.json").read_text(encoding="utf-8"))
    assert saved["candidate_recall"] == model.facts.candidate_recall == recall
    told = f"candidates: {candidates} per document contain {recall:.1%} of its labels (held-out data)"
    assert said[0] == told
    assert [text.partition(":")[0] for text in said[1:]] == ["warning"] * is_low
    assert all("set inference.candidates higher" in text for text in said[1:])


@pytest.mark.parametrize(("above", "warnings"), [(0.0, 0), (1e-9, 1)])
def test_only_a_recall_below_the_limit_is_warned_of(tmp_path, monkeypatch, above, warnings):
    model, _ = train(tmp_path / "model", 12)
    assert model.facts.candidate_recall is not None
    monkeypatch.setattr(LIMIT, model.facts.candidate_recall + above)
    assert len(train(tmp_path / "again", 12)[1]) == 1 + warnings
