"""omikuji's trees find the rule, come back from disk, stop and go on, and keep quiet."""

import sys
from dataclasses import replace
from pathlib import Path

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
from pydantic import ValidationError

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, NlpCapsuleError
from nlpcapsule.lexical.omikuji import OmikujiSettings, OmikujiTrees

SETTINGS = OmikujiSettings(largest_leaf=4)  # so small that twelve labels make trees with branches


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    pytest.importorskip("omikuji")
    documents = documents_of_rule(240, seed=1)
    return OmikujiTrees.fit(SETTINGS, documents, fitting_in(tmp_path_factory.mktemp("fit")))


def test_a_label_that_stands_for_a_word_is_found_in_unseen_documents(ranker):
    assert precision_at_1(ranker, documents_of_rule(120, seed=2)) == 1.0


def test_a_saved_system_ranks_the_very_same(ranker, tmp_path):
    ranker.save(tmp_path)
    ranker.save(tmp_path)  # over an earlier one
    tokens = documents_of_rule(20, seed=3).tokens
    assert_same_rankings(OmikujiTrees.load(SETTINGS, tmp_path), ranker, tokens, LABELS)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {
        ".safetensors",
        ".json",
        ".cbor",
    }


def test_ranking_twice_gives_the_same(ranker):
    assert_same_rankings(ranker, ranker, documents_of_rule(20, seed=3).tokens)


def test_log_odds_are_those_of_the_mean_of_the_trees_scores(ranker):
    tokens = documents_of_rule(3, seed=3).tokens
    labels, log_odds = ranker.top(tokens, 1)
    row = ranker.bag.rows(tokens)[0]
    pairs = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    scores = [dict(tree.predict(pairs, beam_size=10, top_k=LABELS))[labels[0, 0]] for tree in ranker.trees]
    assert 1 / (1 + np.exp(-log_odds[0, 0])) == pytest.approx(np.mean(scores), abs=1e-6)


def test_batch_mates_do_not_matter(ranker):
    assert_batch_mates_do_not_matter(ranker, documents_of_rule(20, seed=3).tokens)


@pytest.mark.parametrize("beam", [1, 10])
@pytest.mark.parametrize(("top_k", "width"), [(3, 3), (8, 8), (50, LABELS)])
def test_labels_that_the_trees_do_not_name_follow_by_id(ranker, beam, top_k, width):
    narrow = OmikujiTrees(OmikujiSettings(largest_leaf=4, beam=beam), ranker.bag, LABELS, ranker.trees)
    labels, log_odds = narrow.top(documents_of_rule(20, seed=3).tokens, top_k)
    assert_rows_are_ranked(labels, log_odds, width)
    if beam == 1 and width > 3:  # three trees name three labels at most
        np.testing.assert_array_equal(log_odds[:, 3:], log_odds[:, -1:].repeat(width - 3, axis=1))
        assert (log_odds[:, 0] > log_odds[:, -1]).all()
        for row, scores in zip(labels, log_odds, strict=True):
            named = set(row[scores > scores[-1]])
            assert [label for label in range(LABELS) if label not in named][: width - len(named)] == list(
                row[len(named) :]
            )


def test_documents_without_a_known_word_are_ranked(ranker):
    labels, log_odds = ranker.top(Ragged.from_rows([[UNKNOWN], [NEVER_SEEN, NEVER_SEEN]]), 5)
    assert_rows_are_ranked(labels, log_odds, 5)
    np.testing.assert_array_equal(labels[0], labels[1])


def test_training_documents_without_words_or_labels_are_left_out(ranker, tmp_path):
    rule = documents_of_rule(240, seed=1)
    documents = EncodedDocuments(
        Ragged.from_rows([*rule.tokens, [UNKNOWN], [20, 21]]), Ragged.from_rows([*rule.labels, [3], []])
    )
    told = []
    fitted = OmikujiTrees.fit(
        SETTINGS, documents, fitting_in(tmp_path, advance=lambda done, total: told.append((done, total)))
    )
    assert precision_at_1(fitted, documents_of_rule(120, seed=2)) == 1.0
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_the_librarys_log_and_progress_bars_stay_off_the_screen(tmp_path, capfd):
    pytest.importorskip("omikuji")
    print("before")
    ranker = OmikujiTrees.fit(SETTINGS, documents_of_rule(60, seed=1), fitting_in(tmp_path))
    ranker.save(tmp_path)
    OmikujiTrees.load(SETTINGS, tmp_path)
    print("after")
    assert capfd.readouterr() == ("before\nafter\n", "")


class StoppedError(Exception):
    pass


def stop_after_a_tree(done, total):
    if done == 1:
        raise StoppedError


@pytest.fixture
def trained(monkeypatch):
    """The trees that the library trains from now on, as it gives them."""
    library, trees = pytest.importorskip("omikuji"), []
    train = library.Model.train_on_data

    def train_and_note(*given):
        trees.append(train(*given))
        return trees[-1]

    monkeypatch.setattr(library.Model, "train_on_data", train_and_note)
    return trees


def test_a_stopped_training_learns_only_the_missing_trees(trained, tmp_path):
    settings = OmikujiSettings(largest_leaf=4, trees=2)
    documents, told = documents_of_rule(240, seed=1), []
    with pytest.raises(StoppedError):
        OmikujiTrees.fit(settings, documents, fitting_in(tmp_path, advance=stop_after_a_tree))
    assert len(trained) == 1
    fitting = fitting_in(tmp_path, advance=lambda done, total: told.append((done, total)))
    resumed = OmikujiTrees.fit(settings, documents, fitting)
    assert len(trained) == 2
    assert told == [(0, 2), (1, 2), (2, 2)]
    # Those kept rank to the last bit as those that the library had in memory, the first of a stopped run.
    as_trained = OmikujiTrees(settings, resumed.bag, LABELS, trained)
    tokens = documents_of_rule(40, seed=3).tokens
    assert_same_rankings(resumed, as_trained, tokens, LABELS)
    for number in range(2):
        alone = (replace(ranker, trees=[ranker.trees[number]]) for ranker in (resumed, as_trained))
        assert_same_rankings(*alone, tokens, LABELS)


def test_a_finished_training_learns_nothing_anew(trained, tmp_path):
    documents, tokens = documents_of_rule(60, seed=1), documents_of_rule(20, seed=3).tokens
    first = OmikujiTrees.fit(SETTINGS, documents, fitting_in(tmp_path))
    assert_same_rankings(OmikujiTrees.fit(SETTINGS, documents, fitting_in(tmp_path)), first, tokens, LABELS)
    assert len(trained) == 3


@pytest.mark.parametrize("other", ["settings", "documents", "seed"])
def test_no_tree_of_another_training_is_taken(trained, tmp_path, other):
    documents = documents_of_rule(60, seed=1)
    OmikujiTrees.fit(SETTINGS, documents, fitting_in(tmp_path))
    OmikujiTrees.fit(
        OmikujiSettings(largest_leaf=5) if other == "settings" else SETTINGS,
        documents_of_rule(60, seed=2) if other == "documents" else documents,
        fitting_in(tmp_path, seed=2 if other == "seed" else 1),
    )
    assert len(trained) == 6


def test_a_run_killed_while_it_writes_a_tree_leaves_nothing_to_be_taken(trained, tmp_path, monkeypatch):
    model = pytest.importorskip("omikuji").Model
    save = model.save

    def half_written(tree, path):
        save(tree, path)
        (Path(path) / "settings.json").unlink()
        raise StoppedError

    monkeypatch.setattr(model, "save", half_written)
    with pytest.raises(StoppedError):
        OmikujiTrees.fit(SETTINGS, documents_of_rule(60, seed=1), fitting_in(tmp_path))
    monkeypatch.setattr(model, "save", save)
    OmikujiTrees.fit(SETTINGS, documents_of_rule(60, seed=1), fitting_in(tmp_path))
    assert len(trained) == 4


def test_a_tree_that_another_process_kept_first_is_the_one_used(trained, tmp_path, monkeypatch):
    model = pytest.importorskip("omikuji").Model
    settings, documents = OmikujiSettings(largest_leaf=4, trees=1), documents_of_rule(60, seed=1)
    save, others = model.save, []

    def save_after_the_other(tree, path):
        monkeypatch.setattr(model, "save", save)
        others.append(OmikujiTrees.fit(settings, documents, fitting_in(tmp_path)))
        save(tree, path)

    monkeypatch.setattr(model, "save", save_after_the_other)
    late = OmikujiTrees.fit(settings, documents, fitting_in(tmp_path))
    assert len(trained) == 2
    assert_same_rankings(late, others[0], documents.tokens, LABELS)


def test_a_missing_tree_is_an_error_that_names_it(ranker, tmp_path):
    ranker.save(tmp_path)
    (tmp_path / "omikuji-tree-1" / "settings.json").unlink()
    with pytest.raises(NlpCapsuleError, match=r"omikuji-tree-1 is damaged .*found tree0\.cbor"):
        OmikujiTrees.load(SETTINGS, tmp_path)


def test_nodes_must_hold_enough_labels_for_their_clusters():
    with pytest.raises(ValidationError, match=r"`largest_leaf` must be at least `clusters` \(100\). Got 50"):
        OmikujiSettings(clusters=100, largest_leaf=50)


def test_it_ranks_better_than_the_majority_label_on_the_sample(tmp_path):
    pytest.importorskip("omikuji")
    assert_beats_the_majority_label_on_the_sample(OmikujiTrees, OmikujiSettings(), tmp_path)


def test_without_the_library_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "omikuji", None)
    message = r"'omikuji'.*pip install 'nlpcapsule\[omikuji\]'"
    with pytest.raises(MissingExtraError, match=message):
        OmikujiTrees.fit(SETTINGS, documents_of_rule(12, seed=1), fitting_in(tmp_path))
    with pytest.raises(MissingExtraError, match=message):
        OmikujiTrees.load(SETTINGS, tmp_path)
