"""A network with lexical evidence: candidates nominated by words, two scores joined, all of it saved."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny_runs import some_documents, tiny_config

from nlpcapsule.config import Config
from nlpcapsule.data.documents import Document
from nlpcapsule.errors import ConfigError, DataError, ModelFolderError
from nlpcapsule.lexical import bag_of_words
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.evidence import FittedEvidence, evidence_settings
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.paper import PaperNetwork
from nlpcapsule.report.routing import inspect_routing
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.network_scorer import NetworkScorer
from nlpcapsule.training import preparation
from nlpcapsule.training.fit_labels import fit_labels
from nlpcapsule.training.preparation import DocumentPart, known_rows_to_hold_out
from nlpcapsule.training.prepared_labels import prepare_labels
from nlpcapsule.training.progress import TrainingProgress
from nlpcapsule.training.run_folder import RunFolder


def fit(folder, dev=40, **settings):
    config = tiny_config(**{"lexical": "one-vs-rest", "candidates": 12, **settings})
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
    assert model.config.training.negatives == "all"
    opened = load_model(folder)
    before, after = (each.rank_tokens(data.dev.tokens, 5) for each in (model, opened))
    assert np.array_equal(before.labels, after.labels)
    assert np.allclose(before.scores, after.scores, atol=1e-6)
    assert json.loads((folder / "manifest.json").read_text())["sha256"].keys() >= {"fusion.json"}


def test_a_hybrid_of_paper_is_trained_saved_and_opened(tmp_path):
    config = tiny_config(model="paper", lexical="one-vs-rest", candidates=12)
    assert (config.model.name, config.network.name, config.training.negatives) == ("hybrid", "paper", "batch")
    data = prepare_labels(some_documents(100), some_documents(20, "dev"), config)
    model = fit_labels(data, config, RunFolder(tmp_path / "model"), TrainingProgress(quiet=True))
    assert isinstance(model.network, PaperNetwork)
    assert isinstance(model.scorer, HybridScorer)
    opened = load_model(tmp_path / "model")
    assert opened.config == config
    before, after = (each.rank_tokens(data.dev.tokens, 5) for each in (model, opened))
    assert np.array_equal(before.labels, after.labels)


def test_nothing_is_held_out_where_the_configuration_says_so():
    documents = some_documents(200)
    assert len(prepare_labels(documents, None, tiny_config(lexical="auto")).dev) == 20
    nothing = prepare_labels(documents, None, tiny_config(lexical="auto", dev_fraction=0))
    assert (len(nothing.train), nothing.dev) == (200, None)
    with pytest.raises(ConfigError, match=r"there are none: give --dev data, or set training\.dev_fraction"):
        prepare_labels(documents, None, tiny_config(lexical="one-vs-rest", dev_fraction=0))


def test_training_ends_with_what_network_and_words_reach_together(tmp_path):
    config = tiny_config(lexical="one-vs-rest", candidates=12)
    data = prepare_labels(some_documents(100), some_documents(20, "dev"), config)
    progress, told = TrainingProgress(quiet=True), []
    progress.say = told.append
    model = fit_labels(data, config, RunFolder(tmp_path / "model"), progress)
    assert told[-1].startswith("hybrid, on the held-out documents that fitted its weights: P@1 ")
    assert f"nDCG@5 {model.facts.dev['nDCG@5']:.4f}" in told[-1]


def test_held_out_documents_are_scored_once_after_training(tmp_path, monkeypatch):
    """For the fusion weights, the threshold and the metrics; the lexical system reads them once in all."""
    network, lexical = [], []
    score, top = NetworkScorer.score, FittedEvidence.top

    def counted_score(self, tokens, *options):
        network.append(len(tokens))
        return score(self, tokens, *options)

    def counted_top(self, tokens, top_k):
        lexical.append(len(tokens))
        return top(self, tokens, top_k)

    monkeypatch.setattr(NetworkScorer, "score", counted_score)
    monkeypatch.setattr(FittedEvidence, "top", counted_top)
    fit(tmp_path / "model", dev=40, epochs=2)
    assert sum(network) == 2 * 40 + 40, "after each epoch, and at the end"
    assert sum(lexical) == 40


def test_words_are_weighed_once_for_the_lexical_system_and_the_similar_documents(fitted, monkeypatch):
    model, data, _ = fitted
    weighed, weigh = [], bag_of_words._weighted
    monkeypatch.setattr(
        bag_of_words, "_weighted", lambda tokens, idf: weighed.append(len(tokens)) or weigh(tokens, idf)
    )
    expected = model.rank_tokens(data.dev.tokens, 5)
    assert weighed == [40, 40], "whole documents, and their leads"
    lexical = model.scorer.lexical
    other_weights = BagOfWords(lexical.neighbours.bag.idf * 2)  # they scale rows, whose length is 1
    doubled = replace(lexical, neighbours=replace(lexical.neighbours, bag=other_weights))
    scorer = replace(model.scorer, lexical=doubled)
    again = replace(model, scorer=scorer).rank_tokens(data.dev.tokens, 5)
    assert len(weighed) == 2 + 3, "other word weights are not taken for the same"
    assert np.allclose(expected.scores, again.scores, atol=1e-5)


def test_only_what_the_words_nominate_is_ranked(fitted):
    model, data, _ = fitted
    ranked = model.rank_tokens(data.dev.tokens, 50).labels
    nominated = model.scorer.lexical.top(data.dev.tokens, 12)[0]
    assert np.array_equal(np.sort(ranked, axis=1), np.sort(nominated, axis=1))


def test_joined_evidence_is_no_worse_on_what_it_was_weighed_on_than_words_alone(fitted):
    """With one epoch the network knows nothing: the weights must see through it."""
    model, data, _ = fitted
    candidates, words = model.scorer.lexical.top(data.dev.tokens, 12)
    hits = [label in set(truth) for label, truth in zip(candidates[:, 0], data.dev.labels, strict=True)]
    assert model.facts.dev["P@1"] >= np.mean(hits) - 0.05
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
    assert isinstance(model.scorer, HybridScorer)


def test_hard_negatives_come_from_the_words(tmp_path):
    model, _ = fit(tmp_path / "model", negatives="hard", negative_count=5)
    assert isinstance(model.scorer, HybridScorer)
    assert model.facts.dev is not None


def test_a_hybrid_with_many_labels_learns_from_hard_negatives_unasked(tmp_path, monkeypatch):
    monkeypatch.setattr("nlpcapsule.training.fit_labels.MANY_LABELS", 5)
    model, _ = fit(tmp_path / "model")
    assert model.config.training.negatives == "hard"
    assert load_model(tmp_path / "model").config == model.config


def test_a_folder_whose_weights_of_evidence_are_gone_is_refused(tmp_path):
    fit(tmp_path / "model")
    (tmp_path / "model" / "fusion.json").unlink()
    with pytest.raises(ModelFolderError, match=r"fusion\.json is missing"):
        load_model(tmp_path / "model")


def test_the_system_is_one_vs_rest_unless_another_is_named():
    assert evidence_settings("auto").name == "one-vs-rest"
    assert evidence_settings("omikuji").name == "omikuji"


def test_what_is_held_out_leaves_every_label_an_example(monkeypatch):
    documents = [Document(str(row), ("often", f"pair{row % 20}")) for row in range(40)]
    documents += [Document("once", (f"once{row}",)) for row in range(5)]
    labels = [document.labels for document in documents]
    rows = known_rows_to_hold_out(labels, 0.5, seed=1)
    kept, held_out = (list(DocumentPart(documents, rows, inside)) for inside in (False, True))
    assert len(kept) + len(held_out) == 45
    assert len(held_out) == 20  # one of each pair; half of all would be 22
    assert {label for row in held_out for label in row.labels} <= {
        label for row in kept for label in row.labels
    }
    assert known_rows_to_hold_out(labels, 0.2, seed=1) != known_rows_to_hold_out(labels, 0.2, seed=2)
    assert len(known_rows_to_hold_out(labels, 0.2, seed=1)) == 9
    monkeypatch.setattr(preparation, "MOST_HELD_OUT", 4)
    assert len(known_rows_to_hold_out(labels, 0.2, seed=1)) == 4


def test_documents_without_labels_are_held_out_like_others():
    documents = [Document("some words", ("often",) if row % 10 == 0 else ()) for row in range(400)]
    held_out = known_rows_to_hold_out([document.labels for document in documents], 0.1, seed=1)
    assert len(held_out) == 40
    assert 1 <= sum(bool(documents[row].labels) for row in held_out) <= 10  # about a tenth, as of all
    few = prepare_labels(documents, None, tiny_config(lexical="auto"))
    assert (len(few.train), len(few.dev)) == (360, 40)


def test_no_documents_have_no_labels(fitted):
    model, _, _ = fitted
    assert model.rank([]) == model.rank_unused([]) == []


def test_with_too_few_documents_the_network_works_by_itself_unless_words_were_asked_for(tmp_path):
    few = some_documents(60)
    config = tiny_config(lexical="auto")
    some = prepare_labels(few, None, config)
    assert 1 <= len(some.dev) <= 6
    assert not any("alone" in note for note in some.notes)
    data = prepare_labels(few[:4], None, config)  # a tenth of them is none
    assert data.dev is None
    assert len(data.train) == 4
    assert any("the network ranks alone" in note for note in data.notes)
    model = fit_labels(data, config, RunFolder(tmp_path / "model"), TrainingProgress(quiet=True))
    assert type(model.scorer) is NetworkScorer
    assert type(load_model(tmp_path / "model").scorer) is NetworkScorer
    asked = tiny_config(lexical="one-vs-rest")
    assert 1 <= len(prepare_labels(few, None, asked).dev) <= 6
    with pytest.raises(DataError, match=r"4 rows are too few.*--model label-query"):
        prepare_labels(few[:4], None, asked)


def test_words_that_cannot_be_weighed_are_left_out_unless_they_were_asked_for(tmp_path):
    dev = [replace(row, labels=("unheard-of",)) for row in some_documents(12, "dev")]
    for lexical in ("auto", "one-vs-rest"):
        config = tiny_config(lexical=lexical, candidates=12)
        data = prepare_labels(some_documents(100), dev, config)
        folder = RunFolder(tmp_path / lexical)
        if lexical == "auto":
            model = fit_labels(data, config, folder, TrainingProgress(quiet=True))
            assert type(model.scorer) is NetworkScorer
            assert type(load_model(tmp_path / lexical).scorer) is NetworkScorer
        else:
            with pytest.raises(DataError, match="cannot be weighed"):
                fit_labels(data, config, folder, TrainingProgress(quiet=True))


def test_evidence_needs_a_network_that_routes_to_chosen_labels():
    for network in ("kim-cnn", "xml-cnn"):
        with pytest.raises(ConfigError, match=f"model.network='{network}' does not score chosen labels"):
            Config.build("labels", overrides={"network": network})
    with pytest.raises(ConfigError, match="'hybrid' does not rank answers"):
        Config.build("answers", "hybrid")


def test_the_routing_can_be_inspected_on_what_the_words_nominate(fitted):
    model, _, _ = fitted
    found = inspect_routing(model, some_documents(5, "dev"))
    assert len(found.iterations) == 5
    assert set(found.loss_by_iterations) == {1, 2, 3, 4, 5}
