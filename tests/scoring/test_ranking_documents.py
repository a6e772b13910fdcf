"""Top labels, ties, empty input, progress; and answers likewise."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from random_models import LABELS, WORDS, random_answer_model, random_label_model
from scipy.special import expit

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.scoring.answers import score_answers
from nlpcapsule.scoring.documents import rank_documents, rank_scores
from nlpcapsule.scoring.models import RankedAnswer, RankedLabel
from nlpcapsule.scoring.scorer import Scores


@given(
    values=arrays(
        np.float32,
        st.tuples(st.integers(0, 4), st.integers(1, 40)),
        elements=st.integers(-3, 3) | st.sampled_from([-np.inf, np.inf]),
    ),
    top_k=st.integers(0, 12),
)
def test_top_columns_are_those_of_a_stable_sort(values, top_k):
    expected = [sorted(range(len(row)), key=lambda column: -row[column])[:top_k] for row in values]
    assert top_columns(values, top_k).tolist() == expected


@pytest.fixture(scope="module")
def label_model():
    return random_label_model("label-query", "adaptive-kde")


@pytest.fixture(scope="module")
def answer_model():
    return random_answer_model("label-query", "dot")


def test_labels_come_best_first_with_their_names(label_model):
    ranked = label_model.rank([" ".join(WORDS[:6])], top_k=4)[0]
    assert all(isinstance(row, RankedLabel) for row in ranked)
    scores = [row.score for row in ranked]
    assert scores == sorted(scores, reverse=True)
    assert {row.label for row in ranked} < set(LABELS.ids)


def test_more_labels_than_there_are_gives_all_of_them(label_model):
    assert len(label_model.rank(["batan"], top_k=1_000)[0]) == len(LABELS)


def test_unused_labels_are_also_ranked_among_each_other():
    labels, log_odds = np.array([[7, 2, 5], [2, 5, 7]]), np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    unused = np.isin(np.arange(8), [2, 5])
    ranked = rank_scores(Scores(labels, log_odds), 2, unused)
    assert ranked.labels.tolist() == [[7, 5], [7, 5]]
    assert ranked.unused.labels.tolist() == [[5, 2], [5, 2]]
    np.testing.assert_allclose(ranked.unused.scores, expit([[2.0, 1.0], [2.0, 1.0]]), rtol=1e-6)
    assert rank_scores(Scores(labels, log_odds), 2, np.zeros(8, dtype=bool)).unused is None


def test_no_text_gives_no_ranking(label_model, answer_model):
    assert label_model.rank([]) == []
    assert answer_model.rank([]) == []


def test_a_text_without_a_known_word_is_ranked_all_the_same(label_model):
    empty, unknown = label_model.rank(["", "qqq"], top_k=2)
    assert len(empty) == len(unknown) == 2
    assert np.isfinite([row.score for row in empty + unknown]).all()


def test_progress_is_told_of_every_document_once(label_model, answer_model):
    done = []
    tokens = label_model.encode(["batan"] * 5)
    rank_documents(replace(label_model.scorer, batch=2), tokens, 1, advance=done.append)
    assert done == [2, 2, 1]
    done.clear()
    asked, empty = Question("batan", (Candidate("dovel"),)), Question("batan", ())
    encoded = answer_model.encode([asked, empty, empty, empty, asked])
    score_answers(answer_model.network, encoded, batch=2, advance=done.append)
    assert done == [2, 2, 1]


@pytest.mark.parametrize("kind", ["labels", "answers"])
def test_a_network_in_training_mode_is_refused(kind, label_model, answer_model):
    """Scoring does not switch modes: another thread may be using the network."""
    model = label_model if kind == "labels" else answer_model
    asked = ["batan"] if kind == "labels" else [Question("batan", (Candidate("dovel"),))]
    model.network.train()
    try:
        with pytest.raises(RuntimeError, match="training mode"):
            model.rank(asked)
        assert model.network.training
    finally:
        model.network.eval()
    assert len(model.rank(asked)) == 1


def test_bf16_ranks_nearly_like_float32(label_model):
    tokens = label_model.encode([" ".join(WORDS[start : start + 7]) for start in range(6)])
    exact = rank_documents(label_model.scorer, tokens, 15)
    rough = rank_documents(replace(label_model.scorer, bf16=True), tokens, 15)
    assert rough.scores.dtype == np.float32
    assert np.isfinite(rough.scores).all()
    assert not np.array_equal(exact.scores, rough.scores)
    assert (exact.labels[:, 0] == rough.labels[:, 0]).mean() > 0.5


def test_candidates_may_differ_from_document_to_document(label_model):
    tokens = label_model.encode(["batan", "dovel kisor", "lumip metan ravel"])
    candidates = np.array([[0, 5], [7, 1], [14, 2]])
    rankings = rank_documents(replace(label_model.scorer, batch=2), tokens, 2, candidates=candidates)
    assert [set(row) for row in rankings.labels.tolist()] == [{0, 5}, {7, 1}, {14, 2}]


def test_networks_that_do_not_route_have_no_iterations():
    rankings = random_label_model("kim-cnn", None).rank_tokens(Ragged.from_rows([[1, 2, 3]]), 2)
    assert rankings.iterations is None
    assert rankings.agreement is None


def test_answers_come_best_first_with_their_places(answer_model):
    question = Question(
        "batan dovel", tuple(Candidate(text) for text in ("kisor", "batan dovel", "lumip ravel"))
    )
    ranked = answer_model.rank([question])[0]
    assert all(isinstance(row, RankedAnswer) for row in ranked)
    assert [question.candidates[row.position].text for row in ranked] == [row.answer for row in ranked]
    assert [row.score for row in ranked] == sorted((row.score for row in ranked), reverse=True)
    assert (
        ranked[0].answer == "batan dovel"
    )  # one encoder for both: nothing is nearer than the question itself


def test_equal_answers_keep_their_order(answer_model):
    class Undecided(torch.nn.Linear):
        def forward(self, questions, answers, question_of):
            return torch.zeros(len(answers))

    question = Question("batan", tuple(Candidate(text) for text in ("dovel", "kisor", "lumip", "ravel")))
    ranked = replace(answer_model, network=Undecided(1, 1).eval()).rank([question])[0]
    assert [(row.position, row.score) for row in ranked] == [(0, 0.5), (1, 0.5), (2, 0.5), (3, 0.5)]


@pytest.mark.parametrize("batch", [1, 3])
def test_questions_without_candidates_have_no_scores(answer_model, batch):
    questions = [Question("batan", ()), Question("dovel", (Candidate("kisor"),)), Question("lumip", ())]
    scores = score_answers(answer_model.network, answer_model.encode(questions), batch=batch)
    assert [len(row) for row in scores] == [0, 1, 0]


def test_ranking_builds_no_graph(label_model):
    assert torch.is_grad_enabled()
    label_model.rank(["batan"])
    assert torch.is_grad_enabled()
    assert all(parameter.grad is None for parameter in label_model.network.parameters())
