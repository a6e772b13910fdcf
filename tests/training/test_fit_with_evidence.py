"""A network with lexical evidence: candidates nominated by words, two scores joined, all of it saved."""

import json

import numpy as np
import pytest
from tiny_runs import some_documents, tiny_config

from nlpcapsule.config import Config
from nlpcapsule.diagnostics.inspection import inspect_routing
from nlpcapsule.errors import ConfigError, ModelFolderError
from nlpcapsule.lexical.build import evidence_system
from nlpcapsule.model_folder import load_model
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def fit(folder, dev=40, **settings):
    config = tiny_config(model="label-query", **{"lexical": "one-vs-rest", "candidates": 12, **settings})
    held_out = some_documents(dev, "dev") if dev else None
    data = prepare_labels(some_documents(200), held_out, config)
    return fit_labels(data, config, RunFolder(folder), TrainingProgress(quiet=True)), data


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence") / "model"
    model, data = fit(folder)
    return model, data, folder


def test_what_is_saved_ranks_the_same_when_opened(fitted):
    model, data, folder = fitted
    opened = load_model(folder)
    before, after = (each.rank_tokens(data.dev.tokens, 5) for each in (model, opened))
    assert np.array_equal(before.labels, after.labels)
    assert np.allclose(before.scores, after.scores, atol=1e-6)
    assert json.loads((folder / "manifest.json").read_text())["sha256"].keys() >= {"fusion.json"}


def test_only_what_the_words_nominate_is_ranked(fitted):
    model, data, _ = fitted
    ranked = model.rank_tokens(data.dev.tokens, 50).labels
    nominated = model.words.top(data.dev.tokens, 12)[0]
    assert np.array_equal(np.sort(ranked, axis=1), np.sort(nominated, axis=1))


def test_joined_evidence_is_no_worse_on_what_it_was_weighed_on_than_words_alone(fitted):
    """With one epoch the network knows nothing: the weights must see through it."""
    model, data, _ = fitted
    candidates, words = model.words.top(data.dev.tokens, 12)
    hits = [label in set(truth) for label, truth in zip(candidates[:, 0], data.dev.labels, strict=True)]
    assert model.facts["dev"]["P@1"] >= np.mean(hits) - 0.05
    assert words.shape == candidates.shape


def test_a_documents_ranking_does_not_depend_on_its_batch_mates(fitted):
    model, data, _ = fitted
    together = model.rank_tokens(data.dev.tokens, 5)
    for row in (0, 7, 21):
        alone = model.rank_tokens(data.dev.tokens.take([row]), 5)
        assert np.array_equal(alone.labels[0], together.labels[row])
        assert np.allclose(alone.scores[0], together.scores[row], atol=1e-5)


def test_without_a_dev_part_some_training_documents_are_held_out(tmp_path):
    model, data = fit(tmp_path / "model", dev=0)
    assert len(data.dev) == 20
    assert model.fusion is not None


def test_hard_negatives_come_from_the_words(tmp_path):
    model, _ = fit(tmp_path / "model", negatives="hard", negative_count=5)
    assert model.nominator is None
    assert "dev" in model.facts


def test_a_folder_whose_weights_of_evidence_are_gone_is_refused(tmp_path):
    fit(tmp_path / "model")
    (tmp_path / "model" / "fusion.json").unlink()
    with pytest.raises(ModelFolderError, match=r"fusion\.json is missing"):
        load_model(tmp_path / "model")


def test_the_system_is_chosen_by_the_work_ahead():
    assert evidence_system("auto", 15_449, 3_321) == "one-vs-rest"
    assert evidence_system("auto", 45_000, 4_108) == "omikuji"
    assert evidence_system("omikuji", 10, 10) == "omikuji"


def test_evidence_needs_a_network_that_routes_to_chosen_labels():
    with pytest.raises(ConfigError, match=r"inference\.lexical"):
        Config.build("labels", "kim-cnn", overrides={"lexical": "auto"})
    with pytest.raises(ConfigError, match="not 'answers'"):
        Config.build("answers", "label-query", overrides={"lexical": "auto"})


def test_the_routing_can_be_inspected_on_what_the_words_nominate(fitted):
    model, _, _ = fitted
    found = inspect_routing(model, some_documents(5, "dev"))
    assert len(found.iterations) == 5
    assert set(found.loss_by_iterations) == {1, 2, 3, 4, 5}
