"""One-vs-rest finds the rule, stops and goes on, and gives the same however many processes work."""

import numpy as np
import pytest
from lexical_tasks import (
    LABELS,
    NEVER_SEEN,
    UNKNOWN,
    assert_batch_mates_do_not_matter,
    assert_beats_the_majority_label_on_the_sample,
    assert_rows_are_ranked,
    assert_same_rankings,
    documents_of_rule,
    fitting_in,
    precision_at_1,
)
from sklearn.svm import LinearSVC

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical import one_vs_rest
from nlpcapsule.lexical.many_labels import pool
from nlpcapsule.lexical.one_vs_rest import OneVsRest, OneVsRestSettings

SETTINGS = OneVsRestSettings()


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    return OneVsRest.fit(SETTINGS, documents_of_rule(240, seed=1), fitting_in(tmp_path_factory.mktemp("fit")))


def assert_same_weights(one, other):
    np.testing.assert_array_equal(one.weights.toarray(), other.weights.toarray())
    np.testing.assert_array_equal(one.bias, other.bias)


def test_a_label_that_stands_for_a_word_is_found_in_unseen_documents(ranker):
    assert precision_at_1(ranker, documents_of_rule(120, seed=2)) == 1.0


def test_scores_are_the_margins_of_scikit_learns_machine(tmp_path):
    documents = documents_of_rule(60, seed=1)
    ranker = OneVsRest.fit(OneVsRestSettings(smallest_weight=0), documents, fitting_in(tmp_path))
    labels, margins = ranker.top(documents.tokens, LABELS)
    features = ranker.bag.rows(documents.tokens)
    machine = LinearSVC(C=1.0, loss="squared_hinge", dual=True, random_state=1)
    machine.fit(features.astype(np.float64), documents.labels.values == 3)
    np.testing.assert_allclose(margins[labels == 3], machine.decision_function(features), atol=1e-5)


def test_small_weights_are_dropped_and_the_others_kept(tmp_path):
    documents = documents_of_rule(60, seed=1)
    full, cut = (
        OneVsRest.fit(
            OneVsRestSettings(smallest_weight=least), documents, fitting_in(tmp_path)
        ).weights.toarray()
        for least in (0, 0.1)
    )
    np.testing.assert_array_equal(cut, np.where(np.abs(full) < 0.1, 0, full))
    assert 0 < np.count_nonzero(cut) < np.count_nonzero(full)


def test_a_word_can_mean_something_in_the_opening_alone(tmp_path):
    """Every document has the words 2 and 3; its label says which of them comes first."""
    rows = [[2, 4, 5, 3], [3, 4, 5, 2]] * 10
    task = EncodedDocuments(Ragged.from_rows(rows), Ragged.from_rows([[0], [1]] * 10))
    blind, seeing = (
        OneVsRest.fit(OneVsRestSettings(lead_tokens=lead), task, fitting_in(tmp_path / str(lead), 6, 2))
        for lead in (0, 1)
    )
    asked = Ragged.from_rows([[2, 5, 3], [3, 5, 2]])
    assert seeing.top(asked, 1)[0].ravel().tolist() == [0, 1]
    margins = blind.top(asked, 2)[1]
    assert margins[:, 0] == pytest.approx(margins[:, 1], abs=1e-3)
    seeing.save(tmp_path)
    again = OneVsRest.load(OneVsRestSettings(lead_tokens=1), tmp_path)
    assert np.array_equal(again.top(asked, 2)[1], seeing.top(asked, 2)[1])


def test_a_saved_system_ranks_the_same(ranker, tmp_path):
    ranker.save(tmp_path)
    tokens = documents_of_rule(20, seed=3).tokens
    assert_same_rankings(OneVsRest.load(SETTINGS, tmp_path), ranker, tokens)


def test_a_stopped_training_goes_on_where_it_was_and_ends_the_same(ranker, tmp_path, monkeypatch):
    monkeypatch.setattr(one_vs_rest, "BLOCK", 5)  # three blocks
    documents, told = documents_of_rule(240, seed=1), []

    def stop_after_a_block(done, total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        OneVsRest.fit(SETTINGS, documents, fitting_in(tmp_path, advance=stop_after_a_block))
    fitting = fitting_in(tmp_path, advance=lambda done, total: told.append((done, total)))
    assert_same_weights(OneVsRest.fit(SETTINGS, documents, fitting), ranker)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_other_settings_take_no_block_of_an_earlier_training(tmp_path):
    documents = documents_of_rule(60, seed=1)
    first = OneVsRest.fit(SETTINGS, documents, fitting_in(tmp_path))
    second = OneVsRest.fit(OneVsRestSettings(C=0.01), documents, fitting_in(tmp_path))
    assert np.abs(first.weights).sum() > 2 * np.abs(second.weights).sum()


def test_two_processes_learn_the_very_same_weights(ranker, tmp_path, monkeypatch):
    monkeypatch.setattr(one_vs_rest, "BLOCK", 6)
    monkeypatch.setattr(pool, "thread_count", lambda: 2)
    fitted = OneVsRest.fit(SETTINGS, documents_of_rule(240, seed=1), fitting_in(tmp_path))
    assert_same_weights(fitted, ranker)


def test_labels_of_all_documents_of_one_and_of_none_are_learned_too(tmp_path):
    rule = documents_of_rule(60, seed=1)
    everywhere, once, nowhere = LABELS, LABELS + 1, LABELS + 2
    rows = [[*row, everywhere, *([once] if number == 7 else [])] for number, row in enumerate(rule.labels)]
    documents = EncodedDocuments(rule.tokens, Ragged.from_rows(rows))
    ranker = OneVsRest.fit(SETTINGS, documents, fitting_in(tmp_path, labels=LABELS + 3))
    labels, margins = ranker.top(rule.tokens, LABELS + 3)
    assert_rows_are_ranked(labels, margins, LABELS + 3)
    assert (margins[labels == everywhere] > 0).all()
    assert (margins[labels == nowhere] < 0).all()
    once_scores = margins[labels == once]
    assert once_scores.argmax() == 7


def test_documents_without_a_known_word_get_the_labels_by_bias(ranker):
    tokens = Ragged.from_rows([[UNKNOWN], [NEVER_SEEN, NEVER_SEEN]])
    labels, margins = ranker.top(tokens, 5)
    assert_rows_are_ranked(labels, margins, 5)
    np.testing.assert_array_equal(margins[0], np.sort(ranker.bias)[::-1][:5])
    np.testing.assert_array_equal(labels[0], labels[1])


def test_documents_are_ranked_alike_alone_and_in_any_chunk(ranker, monkeypatch):
    tokens = documents_of_rule(20, seed=3).tokens
    whole = ranker.top(tokens, 5)
    monkeypatch.setattr(one_vs_rest, "_SCORES_AT_A_TIME", 3 * LABELS)
    for ours, theirs in zip(ranker.top(tokens, 5), whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert_batch_mates_do_not_matter(ranker, tokens)


@pytest.mark.parametrize(("top_k", "width"), [(3, 3), (LABELS, LABELS), (50, LABELS)])
def test_there_are_as_many_labels_as_wanted_or_as_exist(ranker, top_k, width):
    assert_rows_are_ranked(*ranker.top(documents_of_rule(20, seed=3).tokens, top_k), width)


def test_it_ranks_better_than_the_majority_label_on_the_sample(tmp_path):
    assert_beats_the_majority_label_on_the_sample(OneVsRest, SETTINGS, tmp_path)
