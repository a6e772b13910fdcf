"""Every figure for ranked labels against plain loops over documents and labels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.evaluation.label_metrics import label_metrics, paper_ndcg, per_document_metrics, r_precision
from nlpcapsule.evaluation.ranked import judge_rankings
from nlpcapsule.evaluation.report import COUNTS

LABELS = 12
TRAIN_COUNTS = np.array([0, 1, 2, 10, 11, 30, 50, 51, 80, 3, 0, 400])
TRAIN_SIZE = 1000


@st.composite
def rankings_and_truth(draw):
    """Short and empty rankings, documents without labels, and true labels that training never saw."""
    documents = draw(st.integers(1, 6))
    ranks = draw(st.integers(1, 9))
    rankings = np.full((documents, ranks), -1)
    scores = np.zeros((documents, ranks))
    probability = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5001, 0.9, 1.0])
    truth = []
    for row in range(documents):
        labels = draw(st.lists(st.integers(0, LABELS - 1), unique=True, max_size=ranks))
        rankings[row, : len(labels)] = labels
        scores[row, : len(labels)] = sorted(
            draw(st.lists(probability, min_size=len(labels), max_size=len(labels))), reverse=True
        )
        truth.append(draw(st.lists(st.integers(-3, LABELS + 3), max_size=8)))
    truth[0] = truth[0] or [draw(st.integers(-3, LABELS + 3))]
    return rankings, scores, truth


def scored(rankings, scores, truth, every_document=False):
    """(ranked labels, their scores, true labels) of every document that has labels, or of all."""
    for row, labels in enumerate(truth):
        if len(labels) or every_document:
            kept = [rank for rank, label in enumerate(rankings[row]) if label >= 0]
            yield [int(rankings[row, i]) for i in kept], [float(scores[row, i]) for i in kept], set(labels)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def examples_of(label):
    return int(TRAIN_COUNTS[label]) if 0 <= label < LABELS else 0


def worth_of(label):
    c = (math.log(TRAIN_SIZE) - 1) * 2.5**0.55
    return 1 + c * math.exp(-0.55 * math.log(examples_of(label) + 1.5))


def dcg(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def slow_label_metrics(rankings, scores, truth, threshold):
    documents = list(scored(rankings, scores, truth))
    figures = {}
    for k in (1, 3, 5):
        figures[f"P@{k}"] = mean(len(set(ranked[:k]) & true) / k for ranked, _, true in documents)
        figures[f"nDCG@{k}"] = mean(
            dcg(label in true for label in ranked[:k]) / dcg([1] * min(k, len(true)))
            for ranked, _, true in documents
        )
        figures[f"R-precision@{k}"] = mean(
            len(set(ranked[:k]) & true) / min(k, len(true)) for ranked, _, true in documents
        )
        found = sum(worth_of(label) for ranked, _, true in documents for label in ranked[:k] if label in true)
        best = sum(sum(sorted(map(worth_of, true), reverse=True)[:k]) for _, _, true in documents)
        figures[f"PSP@{k}"] = found / best
        reached = mean(
            dcg(worth_of(label) * (label in true) for label in ranked[:k]) / dcg([1] * min(k, len(true)))
            for ranked, _, true in documents
        )
        best = mean(
            dcg(sorted(map(worth_of, true), reverse=True)[:k]) / dcg([1] * min(k, len(true)))
            for _, _, true in documents
        )
        figures[f"PSnDCG@{k}"] = reached / best
        figures[f"paper-nDCG@{k}"] = mean(slow_paper_ndcg(ranked, true, k) for ranked, _, true in documents)
    for low, high, name in ((0, 0, "0"), (1, 10, "1-10"), (11, 50, "11-50"), (51, 10**9, ">50")):
        pairs = [
            label in ranked[:5]
            for ranked, _, true in documents
            for label in true
            if low <= examples_of(label) <= high
        ]
        if pairs:
            figures[f"recall@5 ({name} examples)"] = mean(pairs)
    figures |= slow_f1(list(scored(rankings, scores, truth, every_document=True)), threshold)
    figures["documents"] = len(documents)
    figures["documents without labels"] = len(truth) - len(documents)
    figures["unseen true labels"] = sum(examples_of(label) == 0 for _, _, true in documents for label in true)
    return figures


def slow_paper_ndcg(ranked, true, k):
    relevance = [int(label in true) for label in ranked[:50]]
    ideal = dcg(sorted(relevance, reverse=True)[:k])
    return dcg(relevance[:k]) / ideal if ideal else 0.0


def slow_f1(documents, threshold):
    predictions = [
        {label for label, score in zip(ranked, scores, strict=True) if score >= threshold}
        for ranked, scores, _ in documents
    ]
    truths = [true for _, _, true in documents]
    per_label = {}
    for label in set().union(*truths, *predictions):
        right = sum(label in p and label in t for p, t in zip(predictions, truths, strict=True))
        total = sum(label in p for p in predictions) + sum(label in t for t in truths)
        per_label[label] = 2 * right / total
    right = sum(len(p & t) for p, t in zip(predictions, truths, strict=True))
    total = sum(map(len, predictions)) + sum(map(len, truths))
    return {"micro-F1": 2 * right / total, "macro-F1": mean(per_label.values())}


@given(case=rankings_and_truth(), threshold=st.sampled_from([0.0, 0.25, 0.5, 0.95]))
@settings(max_examples=25, deadline=None)
def test_every_figure_agrees_with_plain_loops(case, threshold):
    rankings, scores, truth = case
    figures = label_metrics(rankings, scores, truth, TRAIN_COUNTS, TRAIN_SIZE, threshold)
    expected = slow_label_metrics(rankings, scores, truth, threshold)
    figures.pop("ECE@5", None)
    assert figures.keys() == expected.keys()
    for name, value in expected.items():
        assert figures[name] == pytest.approx(value, abs=1e-9), name


@given(case=rankings_and_truth())
@settings(max_examples=25, deadline=None)
def test_figures_per_document_average_to_the_totals_and_lie_in_the_documents_order(case):
    rankings, scores, truth = case
    each = per_document_metrics(rankings, truth)
    totals = label_metrics(rankings, scores, truth, TRAIN_COUNTS, TRAIN_SIZE)
    assert set(each) == {"P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5"}
    for name, values in each.items():
        assert values.mean() == pytest.approx(totals[name])
    expected = [len(set(ranked[:3]) & true) / 3 for ranked, _, true in scored(rankings, scores, truth)]
    assert each["P@3"] == pytest.approx(expected)


@given(case=rankings_and_truth())
@settings(max_examples=25, deadline=None)
def test_all_figures_but_the_counts_are_fractions(case):
    figures = label_metrics(*case[:2], case[2], TRAIN_COUNTS, TRAIN_SIZE, threshold=0.5)
    for name, value in figures.items():
        assert name in COUNTS or 0 <= value <= 1 + 1e-12, name


def test_a_hand_computed_example():
    rankings = np.array([[4, 2, 7, -1]])
    figures = label_metrics(rankings, None, [[2, 9, 4]], TRAIN_COUNTS, TRAIN_SIZE)
    assert figures["P@1"] == 1.0
    assert figures["P@3"] == pytest.approx(2 / 3)
    assert figures["P@5"] == pytest.approx(2 / 5)
    assert figures["R-precision@5"] == pytest.approx(2 / 3)
    # hits at ranks 1 and 2 of three true labels: (1 + 0.6309) / (1 + 0.6309 + 0.5)
    assert figures["nDCG@3"] == pytest.approx(1.6309298 / 2.1309298, abs=1e-6)
    assert figures["paper-nDCG@3"] == 1.0
    assert figures["recall@5 (1-10 examples)"] == 0.5  # label 2 found, label 9 missed
    assert figures["recall@5 (11-50 examples)"] == 1.0
    assert "recall@5 (>50 examples)" not in figures


def test_unused_labels_ranked_by_themselves_have_a_recall_of_their_own():
    counts = np.array([9, 4, 0, 0, 0])
    rankings, unused = np.array([[0, 1], [1, 0], [0, 1]]), np.array([[2, 3], [4, 2], [3, 4]])
    truth = [[0, 3], [2, 7], []]  # 7 is nobody's: it can only be missed; the third has nothing to find
    figures = label_metrics(rankings, None, truth, counts, 10, unused=unused)
    assert figures["recall@5 among unused labels"] == pytest.approx(2 / 3)
    assert figures["recall@5 (0 examples)"] == 0.0
    assert "recall@5 among unused labels" not in label_metrics(
        rankings, None, [[0]] * 3, counts, 10, unused=unused
    )


def test_a_perfect_ranking_scores_one_everywhere():
    truth = [[2], [11, 3, 5], [8, 1, 2, 3, 4, 5, 6]]
    rankings = np.full((3, 8), -1)
    for row, labels in enumerate(
        truth
    ):  # rarest first, so that the propensity-scored order is the best one too
        rankings[row, : len(labels)] = sorted(labels, key=lambda label: TRAIN_COUNTS[label])
    figures = label_metrics(rankings, None, truth, TRAIN_COUNTS, TRAIN_SIZE)
    names = ("nDCG", "R-precision", "PSP", "PSnDCG", "paper-nDCG")
    assert figures["P@1"] == 1.0
    for name in (f"{name}@{k}" for name in names for k in (1, 3, 5)):
        assert figures[name] == pytest.approx(1.0), name


@pytest.mark.parametrize("unseen", [LABELS, LABELS + 500, -1, -7])
def test_a_true_label_that_training_never_saw_lowers_what_a_full_ranking_can_reach(unseen):
    rankings = np.array([[3, 4, -1, -1, -1]])
    seen = label_metrics(rankings, None, [[3, 4]], TRAIN_COUNTS, TRAIN_SIZE)
    figures = label_metrics(rankings, None, [[3, 4, unseen]], TRAIN_COUNTS, TRAIN_SIZE)
    for name in ("nDCG@3", "nDCG@5", "R-precision@3", "PSP@1", "PSP@5", "PSnDCG@5"):
        assert seen[name] == pytest.approx(1.0), name
        assert figures[name] < seen[name], name
    assert figures["paper-nDCG@5"] == 1.0
    assert figures["unseen true labels"] == 1
    assert figures["recall@5 (0 examples)"] == 0.0


def test_paper_ndcg_ignores_hits_below_rank_fifty():
    rankings = np.arange(60)[None, :]
    assert paper_ndcg(judge_rankings(rankings, [[0, 55]]), 3)[0] == 1.0
    assert paper_ndcg(judge_rankings(rankings, [[0, 49]]), 3)[0] == pytest.approx(1 / 1.6309298, abs=1e-6)
    assert paper_ndcg(judge_rankings(rankings, [[55]]), 3)[0] == 0.0


def test_documents_without_labels_count_where_scores_decide_and_nowhere_else():
    rankings, scores = np.array([[1, 2], [3, 4], [5, 6]]), np.full((3, 2), 0.5)
    every = label_metrics(rankings, scores, [[1], [], [6, 7]], TRAIN_COUNTS, TRAIN_SIZE, 0.5)
    labelled = label_metrics(rankings[[0, 2]], scores[[0, 2]], [[1], [6, 7]], TRAIN_COUNTS, TRAIN_SIZE, 0.5)
    assert every.pop("documents without labels") == 1
    assert labelled.pop("documents without labels") == 0
    # Two of four labels given are right, and two of six: at a probability of a half.
    assert (labelled.pop("ECE@5"), every.pop("ECE@5")) == (0.0, pytest.approx(1 / 6))
    assert (labelled.pop("micro-F1"), every.pop("micro-F1")) == (pytest.approx(4 / 7), pytest.approx(4 / 9))
    assert (labelled.pop("macro-F1"), every.pop("macro-F1")) == (pytest.approx(2 / 5), pytest.approx(2 / 7))
    assert every == labelled


def test_without_scores_there_is_no_calibration_and_no_f1():
    figures = label_metrics(np.array([[1]]), None, [[1]], TRAIN_COUNTS, TRAIN_SIZE)
    assert not {"ECE@5", "micro-F1", "macro-F1"} & figures.keys()


def test_calibration_looks_at_the_first_five_ranks_only():
    rankings, scores = np.array([[1, 2, 3, 4, 5, 6, 7]]), np.array([[1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]])
    assert label_metrics(rankings, scores, [[1, 2]], TRAIN_COUNTS, TRAIN_SIZE)["ECE@5"] == 0.0


def test_no_labels_at_all_is_a_data_error():
    with pytest.raises(DataError, match="no document has a label"):
        label_metrics(np.array([[1]]), None, [[]], TRAIN_COUNTS, TRAIN_SIZE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": np.array([[0.5, np.nan]])}, "NaN"),
        ({"scores": np.array([[0.5]])}, "shape"),
        ({"scores": np.array([[1.5, 0.5]])}, "between 0 and 1"),
        ({"rankings": np.array([[1, 1]])}, "repeat"),
        ({"rankings": np.array([[-1, 1]])}, "none left"),
        ({"rankings": np.array([[1, -2]])}, "none left"),
        ({"rankings": np.array([[1, LABELS]])}, "below 12"),
        ({"rankings": np.array([[1.0, 2.0]])}, "integers"),
        ({"rankings": np.array([1, 2])}, "matrix"),
        ({"truth": [[1], [2]]}, "2 documents"),
        ({"train_size": 0}, r"`train_size` must be a positive integer\. Got 0 instead\."),
        ({"train_counts": np.array([1, 1, -4])}, "negative"),
        ({"threshold": math.nan}, "threshold"),
        ({"scores": None, "threshold": 0.5}, "scores"),
    ],
)
def test_impossible_input_is_refused_by_name(changes, message):
    arguments = {
        "rankings": np.array([[1, 2]]),
        "scores": np.array([[0.5, 0.4]]),
        "truth": [[1, 2]],
        "train_counts": TRAIN_COUNTS,
        "train_size": TRAIN_SIZE,
    }
    with pytest.raises(NlpCapsuleError, match=message):
        label_metrics(**(arguments | changes))


@pytest.mark.parametrize("k", [-1, 0, 2.5, True])
def test_a_cutoff_must_be_a_positive_integer(k):
    rankings = np.array([[1]])
    message = rf"`k` must be a positive integer\. Got {k} instead\."
    with pytest.raises(NlpCapsuleError, match=message):
        per_document_metrics(rankings, [[1]], cutoffs=(1, k))
    for figure in (r_precision, paper_ndcg):
        with pytest.raises(NlpCapsuleError, match=message):
            figure(judge_rankings(rankings, [[1]]), k)


def test_nan_behind_the_end_of_a_ranking_is_never_read():
    figures = label_metrics(
        np.array([[1, -1]]), np.array([[1.0, np.nan]]), [[1]], TRAIN_COUNTS, TRAIN_SIZE, threshold=0.5
    )
    assert figures["ECE@5"] == 0.0
    assert figures["micro-F1"] == 1.0
