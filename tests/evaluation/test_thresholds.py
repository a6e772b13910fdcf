import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.evaluation.ranked import judge_rankings
from nlpcapsule.evaluation.thresholds import best_threshold, f1_at_threshold


@st.composite
def held_out_documents(draw):
    documents, ranks = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rankings = np.array([draw(st.permutations(range(6)))[:ranks] for _ in range(documents)])
    for row in rankings:
        row[draw(st.integers(0, ranks)) :] = -1
    rankings[0, 0] = 2 if rankings[0, 0] == -1 else rankings[0, 0]
    tenths = st.lists(st.integers(0, 10), min_size=ranks, max_size=ranks)
    scores = np.array([draw(tenths) for _ in range(documents)]) / 10
    truth = [draw(st.lists(st.integers(-1, 7), max_size=4)) for _ in range(documents)]
    truth[0] = truth[0] or [2]
    return scores, rankings, truth


@given(case=held_out_documents(), objective=st.sampled_from(["micro-F1", "macro-F1"]))
@settings(max_examples=40, deadline=None)
def test_no_other_score_makes_a_better_threshold_and_the_highest_of_the_best_wins(case, objective):
    scores, rankings, truth = case
    judged = judge_rankings(rankings, truth, scores, every_document=True)
    tried = sorted(set(judged.scores[judged.rankings >= 0].tolist()), reverse=True)
    if not tried:
        with pytest.raises(DataError, match="empty"):
            best_threshold(scores, rankings, truth, objective)
        return
    values = [round(f1_at_threshold(judged, threshold)[objective], 10) for threshold in tried]
    assert best_threshold(scores, rankings, truth, objective) == tried[values.index(max(values))]


def test_hand_computed_threshold():
    scores, rankings = np.array([[0.9, 0.6, 0.2], [0.8, 0.5, 0.1]]), np.array([[0, 1, 2], [3, 4, 5]])
    # accepted 0.9 hit, 0.8 miss, 0.6 hit, 0.5 hit, 0.2 miss, 0.1 miss: best after four, 2*3 / (4+3)
    truth = [[0, 1], [4]]
    assert best_threshold(scores, rankings, truth) == 0.5
    judged = judge_rankings(rankings, truth, scores)
    assert f1_at_threshold(judged, 0.5)["micro-F1"] == pytest.approx(6 / 7)
    assert f1_at_threshold(judged, 0.5)["macro-F1"] == pytest.approx(3 / 4)


def test_a_label_given_to_a_document_without_labels_is_wrong():
    scores, rankings = np.array([[0.9], [0.8], [0.7]]), np.array([[0], [0], [1]])
    truth: list[list[int]] = [[0], [], [1]]
    assert best_threshold(scores, rankings, truth, 0.9) == 0.9
    assert best_threshold(scores, rankings, truth, 0.6) == 0.7
    judged = judge_rankings(rankings, truth, scores, every_document=True)
    assert f1_at_threshold(judged, 0.7)["micro-F1"] == pytest.approx(4 / 5)


def test_tied_scores_are_accepted_together():
    scores, rankings = np.array([[0.7, 0.7, 0.7, 0.7]]), np.array([[0, 1, 2, 3]])
    assert best_threshold(scores, rankings, [[0]]) == 0.7


def test_float32_scores_reach_their_own_threshold():
    scores, rankings = np.array([[0.7, 0.1]], dtype=np.float32), np.array([[0, 1]])
    threshold = best_threshold(scores, rankings, [[0]])
    assert f1_at_threshold(judge_rankings(rankings, [[0]], scores), threshold)["micro-F1"] == 1.0


def test_a_single_label_in_truth_and_predictions_is_scored():
    judged = judge_rankings(np.array([[0], [0]]), [[0], [0]], np.array([[0.9], [0.1]]))
    assert f1_at_threshold(judged, 0.5) == pytest.approx({"micro-F1": 2 / 3, "macro-F1": 2 / 3})


def test_impossible_input_is_refused():
    scores, rankings = np.array([[0.5]]), np.array([[0]])
    with pytest.raises(NlpCapsuleError, match="NaN"):
        best_threshold(scores * np.nan, rankings, [[0]])
    with pytest.raises(DataError, match="no document has a label"):
        best_threshold(scores, rankings, [[]])


@given(
    tenths=st.lists(st.integers(0, 5), min_size=4, max_size=20),
    wanted=st.sampled_from([0.3, 0.5, 0.8, 1.0]),
    right=st.sets(st.integers(0, 19), min_size=1),
)
def test_the_threshold_for_a_precision_returns_the_most_labels_that_reach_it(tenths, wanted, right):
    scores = np.array([sorted(tenths, reverse=True)]) / 5
    labels = np.arange(scores.size).reshape(1, -1)
    chosen = best_threshold(scores, labels, [sorted(right)], wanted)
    reached = {float(least): np.isin(labels[scores >= least], sorted(right)).mean() for least in scores[0]}
    enough = [least for least, precision in reached.items() if precision >= wanted - 1e-9]
    if enough:
        assert chosen == min(enough)
    else:
        assert reached[chosen] == pytest.approx(max(reached.values()))
