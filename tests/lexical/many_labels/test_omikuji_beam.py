"""Omikuji's trees reach as many labels as asked, in threads or not, and short rankings keep their beam."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logit

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical.evidence import evidence_settings
from nlpcapsule.lexical.many_labels import omikuji_beam, threaded
from nlpcapsule.lexical.many_labels.omikuji_beam import top_of_trees
from nlpcapsule.lexical.omikuji import OmikujiSettings, OmikujiTrees
from nlpcapsule.lexical.ranker import Fitting
from nlpcapsule.scoring.hybrid_scorer import CANDIDATES

LABELS = 600
LOWEST = logit(1e-30) - 1


def documents(copies, seed):
    """Word 2 + k stands for label k."""
    generator = np.random.default_rng(seed)
    labels = np.tile(np.arange(LABELS), copies)
    tokens = np.column_stack([2 + labels, generator.integers(2, 2 + LABELS, (len(labels), 4))])
    return EncodedDocuments(Ragged.from_rows(tokens), Ragged.from_rows(labels[:, None]))


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    pytest.importorskip("omikuji")
    words = [f"w{number}" for number in range(2 + LABELS)]
    fitting = Fitting(words, LABELS, ignored=(0, 1), seed=1, checkpoint=tmp_path_factory.mktemp("fit"))
    return OmikujiTrees.fit(OmikujiSettings(), documents(2, seed=1), fitting)


@pytest.fixture(scope="module")
def tokens():
    return documents(1, seed=2).tokens.slice(0, 40)


def with_beam(ranker, beam):
    return replace(ranker, settings=OmikujiSettings(beam=beam))


def dense_log_odds(ranker, tokens, beam):
    """Log-odds (N, n) from the definition: the mean over trees, 0 where one names no label."""
    rows = []
    for document in ranker.bag.rows(tokens):
        pairs = list(zip(document.indices.tolist(), document.data.tolist(), strict=True))
        total, reached = np.zeros(LABELS), np.zeros(LABELS, dtype=bool)
        for tree in ranker.trees:
            for label, score in tree.predict(pairs, beam_size=beam, top_k=LABELS):
                total[label] += score
                reached[label] = True
        scores = logit(np.clip(total / len(ranker.trees), 1e-30, 1 - 1e-7))
        rows.append(np.where(reached, scores, LOWEST))
    return np.array(rows)


@pytest.mark.parametrize("beam", [1, 10])
def test_two_hundred_labels_are_reached_when_there_are_enough(ranker, tokens, beam):
    assert ((dense_log_odds(ranker, tokens, beam) > LOWEST).sum(axis=1) < 200).any(), "or it is too easy"
    labels, log_odds = with_beam(ranker, beam).top(tokens, 200)
    assert [len(set(row)) for row in labels.tolist()] == [200] * len(tokens)
    assert (np.diff(log_odds, axis=1) <= 0).all()
    assert (log_odds > LOWEST).all()


@pytest.mark.parametrize("top_k", [1, 5, 100, LABELS, 2 * LABELS])
def test_short_rankings_and_those_of_all_labels_keep_the_beam(ranker, tokens, top_k):
    labels, log_odds = ranker.top(tokens, top_k)
    expected = dense_log_odds(ranker, tokens, beam=10)
    order = np.argsort(-expected, axis=1, kind="stable")[:, :top_k]
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(log_odds, np.take_along_axis(expected, order, axis=1))


def test_candidates_of_a_hybrid_have_the_log_odds_that_they_have_among_all_labels(ranker, tokens):
    hybrid = with_beam(ranker, evidence_settings("omikuji").beam)
    nominated, everything = hybrid.top(tokens, CANDIDATES), hybrid.top(tokens, LABELS)
    for few, all_labels in zip(nominated, everything, strict=True):
        np.testing.assert_array_equal(few, all_labels[:, :CANDIDATES])


def test_a_widened_beam_does_not_depend_on_batch_mates(ranker, tokens):
    together = ranker.top(tokens, 200)
    for row in range(len(tokens)):
        for alone, expected in zip(ranker.top(tokens.take([row]), 200), together, strict=True):
            np.testing.assert_array_equal(alone[0], expected[row])


class Tree:
    """Names the labels that it holds, best first, as many as a beam keeps; notes what it was asked."""

    def __init__(self, labels):
        self.labels, self.asked, self.threads = labels, [], set()

    def predict(self, pairs, beam_size, top_k):
        self.asked.append((beam_size, top_k))
        self.threads.add(threading.current_thread())
        kept = self.labels[: min(beam_size**2, top_k)]
        return [(label, 1 / (2 + place + len(pairs))) for place, label in enumerate(kept)]


FEATURES = sparse.csr_matrix(np.tri(9, dtype=np.float32))  # document i has i + 1 words


def test_labels_that_no_beam_reaches_follow_by_id():
    held = list(range(299, 149, -1))
    labels, log_odds = top_of_trees([Tree(held)], FEATURES, beam=10, label_count=300, top_k=200)
    np.testing.assert_array_equal(labels, [[*held, *range(50)]] * 9)
    assert (log_odds[:, 149] > LOWEST).all()
    assert (log_odds[:, 150:] == LOWEST).all()


def test_no_more_labels_are_asked_for_than_the_beam_can_reach():
    tree = Tree(range(100_000))
    top_of_trees([tree], FEATURES[:1], beam=10, label_count=100_000, top_k=100)
    top_of_trees([tree], FEATURES[:1], beam=10, label_count=100_000, top_k=200)
    assert tree.asked == [(10, 100), (10, 100), (20, 400)]


@pytest.mark.parametrize(
    ("threads", "count", "others"), [(1, 9, False), (3, 1, False), (3, 9, True)], ids=["1", "one row", "3"]
)
def test_documents_are_ranked_in_threads_where_there_are_several(monkeypatch, threads, count, others):
    tree = Tree(range(50))
    for module in (omikuji_beam, threaded):
        monkeypatch.setattr(module, "thread_count", lambda: threads)
    top_of_trees([tree], FEATURES[:count], beam=10, label_count=50, top_k=5)
    assert len(tree.asked) == count
    assert (tree.threads != {threading.main_thread()}) == others


def test_threads_rank_the_same(ranker, tokens, monkeypatch):
    results = []
    for threads in (1, 3):
        for module in (omikuji_beam, threaded):
            monkeypatch.setattr(module, "thread_count", lambda threads=threads: threads)
        results.append(ranker.top(tokens, 200))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_no_documents_have_no_labels():
    labels, log_odds = top_of_trees([Tree([1])], FEATURES[:0], beam=10, label_count=50, top_k=5)
    assert labels.shape == log_odds.shape == (0, 5)
