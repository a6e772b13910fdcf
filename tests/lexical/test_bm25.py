"""BM25 against a loop over words."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from class_constants import settings_of
from nlpcapsule.baselines.answers.bm25 import BM25, BM25Settings
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.registry import NetworkInputs

WORDS = 12
texts = st.lists(st.lists(st.integers(1, WORDS - 1), max_size=7), min_size=1, max_size=5)


def padded(rows, fill=0, width=None):
    return torch.from_numpy(Ragged.from_rows(rows).padded(range(len(rows)), fill, width))


def score_by_counting(question, answer, training, k1, b):
    mean = sum(map(len, training)) / len(training) or 1 / len(training)
    score = 0.0
    for word in question:
        containing = sum(word in other for other in training)
        idf = math.log(1 + (len(training) - containing + 0.5) / (containing + 0.5))
        count = answer.count(word)
        if count:
            score += idf * count * (k1 + 1) / (count + k1 * (1 - b + b * len(answer) / mean))
    return score


@settings(max_examples=30, deadline=None)
@given(
    training=texts,
    questions=texts,
    answers=texts,
    random=st.randoms(use_true_random=False),
    padding_id=st.sampled_from([0, WORDS]),
    k1=st.sampled_from([0.0, 0.5, 1.2]),
    b=st.sampled_from([0.0, 0.75, 1.0]),
)
def test_scores_equal_a_loop_over_words(training, questions, answers, random, padding_id, k1, b):
    """Padding may be any id, below all words or above them."""
    ranker = BM25(settings_of(BM25Settings, k1=k1, b=b), NetworkInputs(WORDS + 1, padding_id))
    ranker.start_from(training)
    question_of = [random.randrange(len(questions)) for _ in answers]
    scores = ranker(padded(questions, padding_id), padded(answers, padding_id), torch.tensor(question_of))
    expected = [
        score_by_counting(questions[place], answer, training, k1, b)
        for place, answer in zip(question_of, answers, strict=True)
    ]
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=1e-5)


def ranker_of(training):
    ranker = BM25(BM25Settings(), NetworkInputs(WORDS))
    ranker.start_from(training)
    return ranker


def scores_of(ranker, question, *answers, width=None):
    return ranker(
        padded([question]), padded(answers, width=width), torch.zeros(len(answers), dtype=torch.int64)
    )


def test_rare_words_short_answers_and_repetition_count_for_more():
    ranker = ranker_of([[1, 2], [1, 3], [1, 4], [1, 5]])
    rare, common = scores_of(ranker, [1, 2], [2, 6], [1, 6])
    short, long = scores_of(ranker, [2], [2, 6], [2, 6, 7, 8, 9])
    once, twice, thrice = scores_of(ranker, [2], [2, 6, 7], [2, 2, 7], [2, 2, 2])
    assert rare > common > 0
    assert short > long > 0
    assert twice > once
    assert thrice - twice < twice - once


def test_neither_padding_nor_other_answers_change_a_score():
    ranker, answers = ranker_of([[1, 2], [1, 3, 4]]), ([3, 1, 3], [2], [1, 1, 4, 5])
    together = scores_of(ranker, [1, 3], *answers)
    torch.testing.assert_close(scores_of(ranker, [1, 3], *answers, width=9), together)
    alone = torch.cat([scores_of(ranker, [1, 3], answer) for answer in answers])
    torch.testing.assert_close(alone, together)


def test_a_loaded_state_brings_its_counts_along():
    ranker, opened = ranker_of([[1, 2], [1, 3, 4]]), BM25(BM25Settings(), NetworkInputs(WORDS))
    assert not scores_of(opened, [1], [1]).any()
    opened.load_state_dict(ranker.state_dict())
    assert torch.equal(scores_of(opened, [1, 4], [4, 1]), scores_of(ranker, [1, 4], [4, 1]))
    assert opened.mean_length == pytest.approx(2.5)


def test_nothing_is_left_to_a_gradient():
    assert not any(parameter.requires_grad for parameter in ranker_of([[1]]).parameters())


def test_memory_does_not_grow_with_pairs_of_tokens():
    """4,000 answers of 500 words to a question of 500: all pairs of tokens would be a thousand million."""
    ranker = BM25(settings_of(BM25Settings, k1=0), NetworkInputs(751))
    ranker.start_from([[1]])
    answers = torch.arange(251, 751).expand(4_000, -1)
    scores = ranker(torch.arange(1, 501).view(1, -1), answers, torch.zeros(4_000, dtype=torch.int64))
    torch.testing.assert_close(scores, torch.full((4_000,), 250 * math.log(1 + 1.5 / 0.5)))
