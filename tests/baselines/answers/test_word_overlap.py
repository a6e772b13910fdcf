"""Word overlap against a loop over sets of words."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.baselines.answers.word_overlap import overlap_features
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.word_frequency import inverse_document_frequency

WORDS = 12
texts = st.lists(st.lists(st.integers(1, WORDS - 1), max_size=7), min_size=1, max_size=5)


def padded(rows, fill):
    return torch.from_numpy(Ragged.from_rows(rows).padded(range(len(rows)), fill))


def overlap_by_sets(question, answer, idf):
    asked, shared = set(question), set(question) & set(answer)
    weight = sum(idf[word] for word in asked)
    return [
        len(shared) / len(asked) if asked else 0,
        sum(idf[word] for word in shared) / weight if weight else 0,
    ]


@given(texts, texts, st.randoms(use_true_random=False), st.sampled_from([0, WORDS]))
def test_features_equal_a_loop_over_sets(questions, answers, random, padding_id):
    """Padding may be any id, below all words or above them; words may weigh nothing."""
    idf = torch.tensor([random.choice([0.0, 0.5, 2.0]) for _ in range(WORDS + 1)])
    question_of = torch.tensor([random.randrange(len(questions)) for _ in answers])
    features = overlap_features(
        padded(questions, padding_id), padded(answers, padding_id), question_of, idf, padding_id
    )
    expected = [
        overlap_by_sets(questions[q], answer, idf.tolist())
        for q, answer in zip(question_of, answers, strict=True)
    ]
    torch.testing.assert_close(features, torch.tensor(expected, dtype=torch.float32))


def test_memory_does_not_grow_with_pairs_of_tokens():
    """4,000 answers of 500 words to a question of 500: all pairs of tokens would be a thousand million."""
    questions, answers = torch.arange(1, 501).view(1, -1), torch.arange(251, 751).expand(4_000, -1)
    features = overlap_features(questions, answers, torch.zeros(4_000, dtype=torch.int64), torch.ones(751))
    assert (features == 0.5).all()


def test_weights_equal_a_count_by_hand():
    weights = inverse_document_frequency([[2, 3, 3], np.array([2]), [], [2, 5]], vocabulary_size=7)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(
        weights, [math.log(5 / (1 + count)) for count in (0, 0, 3, 1, 0, 1, 0)], rtol=1e-6
    )


def test_a_word_in_every_text_weighs_nothing():
    assert inverse_document_frequency(Ragged.from_rows([[1, 2], [2]]), 3)[2] == 0
