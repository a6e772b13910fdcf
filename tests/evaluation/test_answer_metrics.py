import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.evaluation.answer_metrics import answer_metrics, per_question_metrics
from nlpcapsule.evaluation.bootstrap import bootstrap_interval

DATA = Path(os.environ.get("NLPCAPSULE_DATA", Path(__file__).parents[3] / "shared" / "data"))
CLEAN_DEV = DATA / "trecqa" / "dev-clean.tsv.gz"

QUESTION = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=8)


def slow_ranks_of_right_answers(candidates):
    """1-based ranks of the right answers; every equal or better wrong answer stands before them."""
    ranks = []
    rights = sorted((score for score, label in candidates if label), reverse=True)
    for better_rights, score in enumerate(rights):
        wrong_before = sum(other >= score for other, label in candidates if not label)
        ranks.append(better_rights + wrong_before + 1)
    return ranks


@given(questions=st.lists(QUESTION, min_size=1, max_size=6))
@settings(max_examples=50, deadline=None)
def test_map_and_mrr_agree_with_plain_loops(questions):
    scores = [np.array([score for score, _ in question], dtype=float) for question in questions]
    labels = [np.array([label for _, label in question], dtype=int) for question in questions]
    answered = [ranks for ranks in map(slow_ranks_of_right_answers, questions) if ranks]
    if not answered:
        with pytest.raises(DataError, match="no question has a right answer"):
            answer_metrics(scores, labels)
        return
    precisions = [sum(n / rank for n, rank in enumerate(ranks, 1)) / len(ranks) for ranks in answered]
    figures = answer_metrics(scores, labels)
    assert figures["MAP"] == pytest.approx(sum(precisions) / len(answered))
    assert figures["MRR"] == pytest.approx(sum(1 / min(ranks) for ranks in answered) / len(answered))
    assert figures["questions"] == len(answered)
    assert figures["questions without a right answer"] == len(questions) - len(answered)


def test_hand_computed_example():
    # ranks of the right answers: 1 and 3 in the first question, 2 in the second
    scores = [np.array([0.1, 0.9, 0.5]), np.array([0.2, 0.8])]
    labels = [np.array([1, 1, 0]), np.array([1, 0])]
    figures = answer_metrics(scores, labels)
    assert figures["MAP"] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 2)
    assert figures["MRR"] == pytest.approx((1 + 1 / 2) / 2)
    assert per_question_metrics(scores, labels)["RR"].tolist() == [1.0, 0.5]


def test_the_order_of_tied_candidates_in_the_input_does_not_matter():
    first = answer_metrics([np.zeros(4)], [np.array([1, 0, 0, 1])])
    last = answer_metrics([np.zeros(4)], [np.array([0, 0, 1, 1])])
    assert first == last
    assert first["MAP"] == pytest.approx((1 / 3 + 2 / 4) / 2)


def test_a_perfect_ranking_scores_one_with_an_interval_of_no_width():
    figures = answer_metrics([np.array([2.0, 1.0, 0.0])] * 5, [np.array([1, 1, 0])] * 5)
    for name in ("MAP", "MAP 95% low", "MAP 95% high", "MRR", "MRR 95% low", "MRR 95% high"):
        assert figures[name] == 1.0


def test_the_interval_is_that_of_the_questions_and_repeats_exactly():
    random = np.random.default_rng(3)
    scores = [random.random(10) for _ in range(40)]
    labels = [np.arange(10) < 2 for _ in range(40)]
    figures = answer_metrics(scores, labels)
    low, high = bootstrap_interval(per_question_metrics(scores, labels)["AP"])
    assert (figures["MAP 95% low"], figures["MAP 95% high"]) == (low, high)
    assert low < figures["MAP"] < high
    assert figures == answer_metrics(scores, labels)


@pytest.mark.skipif(
    not CLEAN_DEV.exists(), reason="TREC QA is absent; set NLPCAPSULE_DATA to its parent folder"
)
def test_a_constant_scorer_gets_a_map_of_0_245_on_clean_trec_qa_dev():
    questions: dict[str, list[int]] = {}
    with gzip.open(CLEAN_DEV, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            questions.setdefault(row["qid"], []).append(int(row["label"]))
    labels = [np.array(of_question) for of_question in questions.values()]
    figures = answer_metrics([np.zeros(len(of_question)) for of_question in labels], labels)
    assert figures["questions"] == 65
    assert figures["MAP"] == pytest.approx(0.245, abs=0.0005)


def test_impossible_input_is_refused():
    one, zero = np.array([1.0]), np.array([0])
    with pytest.raises(NlpCapsuleError, match=r"NaN\. Question 1"):
        answer_metrics([one, one * np.nan], [zero, zero])
    with pytest.raises(NlpCapsuleError, match="1 questions, but `labels` has 2"):
        answer_metrics([one], [zero, zero])
    with pytest.raises(NlpCapsuleError, match="one score and one label"):
        answer_metrics([one], [np.array([0, 1])])
    with pytest.raises(NlpCapsuleError, match="0 or 1"):
        answer_metrics([one], [np.array([2])])
