"""Renaming, merging and retiring labels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from learned_models import later_documents

from nlpcapsule.errors import DataError
from nlpcapsule.learning.label_edits import merge_labels, rename_label, retire_labels
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.models import LabelModel
from tests.cli.run_command import assert_refused, run_command


def scores(model: LabelModel) -> list[dict[str, float]]:
    texts = [text.text for text in later_documents()[:20]]
    return [{row.label: row.score for row in rows} for rows in model.rank(texts, len(model.labels))]


def saved_and_loaded(model: LabelModel, folder: Path) -> LabelModel:
    save_model(model, folder)
    loaded = load_model(folder)
    assert isinstance(loaded, LabelModel)
    return loaded


def test_a_renamed_label_keeps_its_scores(model: LabelModel, tmp_path: Path) -> None:
    renamed = saved_and_loaded(rename_label(model, "fish", "aaa <b>sea</b>"), tmp_path / "renamed")
    for before, after in zip(scores(model), scores(renamed), strict=True):
        assert after.pop("aaa <b>sea</b>") == pytest.approx(before.pop("fish"), abs=1e-5)
        assert after == pytest.approx(before, abs=1e-5)


def test_a_retired_label_is_never_predicted(model: LabelModel, tmp_path: Path) -> None:
    retired = saved_and_loaded(retire_labels(model, ["fish", "iron"]), tmp_path / "retired")
    assert len(retired.labels) == len(model.labels) - 2
    assert not any({"fish", "iron"} & row.keys() for row in scores(retired))
    assert retired.facts.training_documents == model.facts.training_documents


def test_a_merged_label_has_the_documents_of_all(model: LabelModel, tmp_path: Path) -> None:
    merged = saved_and_loaded(merge_labels(model, ["fish"], "iron"), tmp_path / "merged")
    labels = model.scorer.lexical.neighbours.labels  # type: ignore[union-attr]
    both = labels[:, [model.labels.ids.index(name) for name in ("fish", "iron")]].max(axis=1).sum()
    assert "fish" not in merged.labels
    assert merged.labels.counts[merged.labels.ids.index("iron")] == both
    fishy = [text.text for text in later_documents() if "fish" in text.labels]
    found = [row[0].label == "iron" or row[1].label == "iron" for row in merged.rank(fishy, 2)]
    assert np.mean(found) > 0.7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: rename_label(model, "fisch", "sea"), "no label 'fisch'; did you mean 'fish'"),
        (lambda model: rename_label(model, "fish", "iron"), "already is a label 'iron'"),
        (lambda model: rename_label(model, "fish", " "), "blank"),
        (lambda model: merge_labels(model, ["fish"], "fish"), "into itself"),
        (lambda model: retire_labels(model, list(model.labels.ids)), "no label with documents"),
    ],
)
def test_impossible_edits_are_refused(change, message: str, model: LabelModel) -> None:
    with pytest.raises(DataError, match=message):
        change(model)


def test_the_commands_write_versions(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(trained, folder)
    assert (
        run_command("labels", "rename", folder, "fish", "sea").err
        == f"renamed fish to sea: version 2 of {folder}\n"
    )
    assert run_command("labels", "retire", folder, "sea", "iron", "-q").code == 0
    assert run_command("labels", "merge", folder, "kelp", "--into", "jute", "-q").code == 0
    names = {json.loads(line)["label"] for line in run_command("labels", "list", folder).out.splitlines()}
    assert names == {"bridge", "cheese", "debt", "glass", "honey", "jute"}
    assert_refused(run_command("labels", "rename", folder, "sea", "ocean"), "no label 'sea'")
