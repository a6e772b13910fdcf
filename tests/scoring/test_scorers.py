"""Scores come in the candidates' order, whoever scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_models import LABELS, WORDS, random_label_model, with_batch

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.scoring import hybrid_scorer
from nlpcapsule.scoring.documents import rank_documents, rank_scores
from nlpcapsule.scoring.fusion import Fusion
from nlpcapsule.scoring.hybrid_scorer import HybridScorer
from nlpcapsule.scoring.lexical_scorer import LexicalScorer, select_log_odds
from nlpcapsule.scoring.scorer import LabelScorer, Scores


class WordCounts:
    """A stand-in for a lexical system: a label's log-odds depend on the document's first token."""

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(len(LABELS))
        log_odds = np.array([np.sin(1.0 + labels * (1 + int(row[0]))) for row in tokens])
        best = np.argsort(-log_odds, axis=1, kind="stable")[:, :top_k]
        return best, np.take_along_axis(log_odds, best, axis=1)

    def shares(self, tokens: Ragged, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (candidates % 3) / 4, tokens.lengths / 100

    def names(self, tokens: Ragged, candidates: np.ndarray) -> None:
        return None


def scorers() -> dict[str, LabelScorer]:
    network, nominated = (random_label_model(name, "kde").scorer for name in ("label-query", "paper"))
    weights = np.random.default_rng(0).normal(size=(2, 12))
    return {
        "network": network,
        "lexical": LexicalScorer(WordCounts(), len(LABELS)),
        "nominated": nominated,
        "hybrid": HybridScorer(WordCounts(), network, np.linspace(1, 0, len(LABELS)), 8, Fusion(*weights)),
    }


TEXTS = [" ".join(WORDS[:9]), "dovel", " ".join(WORDS[5:22]), "kisor lumip batan"]
TOKENS = random_label_model("label-query", "kde").encode(TEXTS)


@pytest.mark.parametrize("name", ["network", "lexical", "nominated", "hybrid"])
def test_scores_come_in_the_order_of_the_candidates(name: str) -> None:
    scorer = scorers()[name]
    own = scorer.score(TOKENS)
    labels = np.broadcast_to(own.labels, own.log_odds.shape)
    shuffled = np.random.default_rng(1).permuted(np.tile(np.arange(labels.shape[1]), (4, 1)), axis=1)
    candidates = np.take_along_axis(labels, shuffled, axis=1)
    scored = scorer.score(TOKENS, candidates)
    assert np.array_equal(scored.labels, candidates)
    expected = np.take_along_axis(own.log_odds, shuffled, axis=1)
    # A document's candidates may be routed in company; in another order sums differ in their last digits.
    np.testing.assert_allclose(scored.log_odds, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["network", "lexical"])
def test_a_scorer_that_names_no_candidates_scores_all_labels(name: str) -> None:
    scorer = scorers()[name]
    assert scorer.candidates(TOKENS) is None
    assert scorer.score(TOKENS).log_odds.shape == (4, len(LABELS))


@pytest.mark.parametrize("name", ["nominated", "hybrid"])
def test_a_scorer_scores_the_candidates_it_names(name: str) -> None:
    scorer = scorers()[name]
    candidates = scorer.candidates(TOKENS)
    assert candidates is not None
    assert candidates.shape == (4, 8)
    assert np.array_equal(scorer.score(TOKENS).labels, candidates)


def test_a_lexical_scorer_stops_at_the_labels_that_are_needed() -> None:
    scored = scorers()["lexical"].score(TOKENS, top_k=3)
    assert scored.labels.shape == scored.log_odds.shape == (4, 3)


@pytest.mark.parametrize("name", ["network", "lexical", "nominated", "hybrid"])
def test_documents_ranked_some_at_a_time_are_ranked_as_all_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LexicalScorer, "batch", 4)
    monkeypatch.setattr(hybrid_scorer, "_DOCUMENTS_AT_A_TIME", 4)
    scorer, tokens, done = scorers()[name], Ragged.from_rows([*TOKENS] * 3), []
    in_parts = rank_documents(with_batch(scorer, 4), tokens, 5, advance=done.append)
    assert done == [4, 4, 4]
    at_once = rank_scores(scorer.score(tokens), 5)
    assert np.array_equal(at_once.labels, in_parts.labels)
    np.testing.assert_allclose(at_once.scores, in_parts.scores, atol=1e-5)


@given(
    labels=st.permutations(range(9)),
    ranked=st.integers(1, 9),
    wanted=st.lists(st.integers(0, 8), max_size=12),
)
def test_log_odds_are_selected_by_label(labels: list[int], ranked: int, wanted: list[int]) -> None:
    log_odds = [5.0 - place for place in range(ranked)]
    known = dict(zip(labels[:ranked], log_odds, strict=True))
    found = select_log_odds(
        np.array([labels[:ranked]]), np.array([log_odds]), np.array([wanted], dtype=np.int64)
    )
    assert found.tolist() == [[known.get(label, log_odds[-1]) for label in wanted]]


def test_equal_scores_keep_the_order_of_the_scores() -> None:
    ranked = rank_scores(Scores(np.array([[7, 3, 5]]), np.array([[1.0, 2.0, 1.0]])), 3)
    assert ranked.labels.tolist() == [[3, 7, 5]]
