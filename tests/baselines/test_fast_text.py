"""fastText finds the rule, comes back from disk, and the same seed gives the same vectors."""

import sys

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

from nlpcapsule.baselines.fast_text import FastText, FastTextSettings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, NlpCapsuleError

SMALL = {
    "softmax": FastTextSettings(size=16, epochs=60, learning_rate=0.5, loss="softmax"),
    "ova": FastTextSettings(size=16, epochs=60, learning_rate=0.5, loss="ova"),
}


@pytest.fixture(scope="module", params=list(SMALL))
def ranker(request, tmp_path_factory):
    pytest.importorskip("fasttext")
    folder = tmp_path_factory.mktemp("fit")
    return FastText.fit(SMALL[request.param], documents_of_rule(240, seed=1), fitting_in(folder))


def test_a_label_that_stands_for_a_word_is_found_in_unseen_documents(ranker):
    assert precision_at_1(ranker, documents_of_rule(120, seed=2)) == 1.0


def test_a_saved_system_ranks_the_same(ranker, tmp_path):
    ranker.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"fasttext.bin", "fasttext.safetensors"}
    loaded = FastText.load(ranker.settings, tmp_path)
    assert_same_rankings(loaded, ranker, documents_of_rule(20, seed=3).tokens)


def test_the_same_seed_gives_the_same_vectors_and_another_gives_others(ranker, tmp_path):
    again, other = (
        FastText.fit(ranker.settings, documents_of_rule(240, seed=1), fitting_in(tmp_path, seed=seed))
        for seed in (1, 2)
    )
    first = ranker.model.get_input_matrix()
    np.testing.assert_array_equal(again.model.get_input_matrix(), first)
    np.testing.assert_array_equal(again.model.get_output_matrix(), ranker.model.get_output_matrix())
    assert not np.array_equal(other.model.get_input_matrix(), first)


def test_log_odds_are_those_of_the_librarys_own_probabilities(ranker):
    tokens = documents_of_rule(3, seed=3).tokens
    labels, log_odds = ranker.top(tokens, LABELS)
    for row, document in enumerate(tokens):
        text = " ".join(map(str, document.tolist()))
        theirs = {name: score for score, name in ranker.model.f.predict(f"{text}\n", LABELS, 0.0, "strict")}
        ours = 1 / (1 + np.exp(-log_odds[row]))
        expected = [theirs[f"__label__{label}"] for label in labels[row]]
        np.testing.assert_allclose(ours, expected, atol=0.01)  # the library looks its sigmoid up in a table


def test_batch_mates_do_not_matter(ranker):
    assert_batch_mates_do_not_matter(ranker, documents_of_rule(20, seed=3).tokens)


@pytest.mark.parametrize(("top_k", "width"), [(3, 3), (50, LABELS)])
def test_there_are_as_many_labels_as_wanted_or_as_exist(ranker, top_k, width):
    assert_rows_are_ranked(*ranker.top(documents_of_rule(20, seed=3).tokens, top_k), width)


def test_labels_without_a_training_document_come_last_by_id(tmp_path):
    pytest.importorskip("fasttext")
    fitting = fitting_in(tmp_path, labels=LABELS + 2)
    ranker = FastText.fit(FastTextSettings(size=4, epochs=2), documents_of_rule(60, seed=1), fitting)
    labels, log_odds = ranker.top(documents_of_rule(5, seed=3).tokens, LABELS + 2)
    assert_rows_are_ranked(labels, log_odds, LABELS + 2)
    assert labels[:, -2:].tolist() == [[LABELS, LABELS + 1]] * 5


def test_documents_without_a_known_word_are_ranked_alike(ranker):
    labels, log_odds = ranker.top(Ragged.from_rows([[UNKNOWN], [NEVER_SEEN], [UNKNOWN, NEVER_SEEN]]), 5)
    assert_rows_are_ranked(labels, log_odds, 5)
    np.testing.assert_array_equal(log_odds, log_odds[:1].repeat(3, axis=0))


def test_ignored_tokens_change_nothing(ranker):
    plain, noisy = ranker.top(Ragged.from_rows([[5, 30], [UNKNOWN, 5, UNKNOWN, 30]]), 5)[1]
    np.testing.assert_array_equal(plain, noisy)


def test_a_training_that_diverges_says_to_lower_the_rate(tmp_path):
    pytest.importorskip("fasttext")
    settings = FastTextSettings(size=4, learning_rate=1e30)
    with pytest.raises(NlpCapsuleError, match=r"set a smaller model\.learning_rate"):
        FastText.fit(settings, documents_of_rule(60, seed=1), fitting_in(tmp_path))


def test_it_ranks_better_than_the_majority_label_on_the_sample(tmp_path):
    pytest.importorskip("fasttext")
    settings = FastTextSettings(size=32)
    assert_beats_the_majority_label_on_the_sample(FastText, settings, tmp_path)


def test_without_the_library_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fasttext", None)
    settings, message = FastTextSettings(), r"'fasttext'.*pip install 'nlpcapsule\[fasttext\]'"
    with pytest.raises(MissingExtraError, match=message):
        FastText.fit(settings, documents_of_rule(12, seed=1), fitting_in(tmp_path))
    with pytest.raises(MissingExtraError, match=message):
        FastText.load(settings, tmp_path)
