"""A hybrid of many documents and labels, which finds both through indexes, can be changed as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from learned_models import HELD_BACK, new_documents, train_small_hybrid

from nlpcapsule.learning.examples import Example
from nlpcapsule.learning.learn import learn
from nlpcapsule.lexical import neighbours, one_vs_rest
from nlpcapsule.lexical.evidence import FittedEvidence
from nlpcapsule.lexical.many_labels import inverted_index
from nlpcapsule.lexical.one_vs_rest import OneVsRest
from nlpcapsule.model_folder import load_model, save_model
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.models import LabelModel


def test_indexes_grow_with_documents_and_labels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(neighbours, "MOST_EXACT", 0)
    monkeypatch.setattr(one_vs_rest, "MOST_WORK", 0)
    train_small_hybrid(tmp_path / "model", epochs=1)
    model = load_model(tmp_path / "model")
    assert isinstance(model, LabelModel)
    learned = learn(model, [Example(letter.text, letter.labels) for letter in new_documents(5)])
    assert learned.new_labels == (HELD_BACK,)
    save_model(learned.model, str(tmp_path / "learned"))
    again = load_model(tmp_path / "learned")  # checks that all parts fit
    assert isinstance(again, LabelModel)
    assert isinstance(again.scorer, HybridScorer)
    lexical = again.scorer.lexical
    assert isinstance(lexical, FittedEvidence)
    assert isinstance(lexical.ranker, OneVsRest)
    assert lexical.ranker.centroids is not None
    assert lexical.neighbours.index is not None
    assert lexical.ranker.centroids.weights.shape[0] == lexical.ranker.weights.shape[0]
    assert lexical.neighbours.index.weights.shape[0] == lexical.neighbours.documents.shape[0]


def test_a_new_label_gets_its_centroid_among_its_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(one_vs_rest, "MOST_WORK", 0)
    train_small_hybrid(tmp_path / "model", epochs=1)
    model = load_model(tmp_path / "model")
    assert isinstance(model, LabelModel)
    rows, centroids = [], []
    for weight in (3.0, 0.0):
        monkeypatch.setattr(inverted_index, "_CENTROID_WEIGHT", weight)
        learned = learn(model, [Example(letter.text, letter.labels) for letter in new_documents(5)]).model
        assert isinstance(learned.scorer, HybridScorer)
        ranker = learned.scorer.lexical.ranker
        assert isinstance(ranker, OneVsRest)
        assert ranker.centroids is not None
        label = learned.labels.ids.index(HELD_BACK)
        rows.append(ranker.weights[[label]].toarray())
        centroids.append(ranker.centroids.weights[[label]].toarray())
    assert centroids[0].any()
    np.testing.assert_allclose(rows[0] - rows[1], 3 / 5**0.25 * centroids[0], atol=1e-5)
