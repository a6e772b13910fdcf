"""What words add to the capsules' cosine, against plain loops over words."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.networks.word_match import TextReading, WordMatch, is_first, largest_cosines
from nlpcapsule.registry import NetworkInputs

WORDS, SIZE, CAPSULE, PADDING = 9, 5, 4, 0
rows = st.lists(st.integers(1, WORDS - 1), min_size=1, max_size=7)


def vectors():
    table = torch.randn(WORDS, SIZE, generator=torch.Generator().manual_seed(3))
    table[PADDING] = 0
    return table


def reading(*texts):
    width = max(map(len, texts)) + 1
    tokens = torch.tensor([[*text, *[PADDING] * (width - len(text))] for text in texts])
    capsules = torch.randn(len(texts), CAPSULE, generator=torch.Generator().manual_seed(4))
    return TextReading(tokens, vectors()[tokens], capsules)


def match_of(idf):
    torch.manual_seed(0)
    return WordMatch(
        NetworkInputs(WORDS, PADDING, idf=np.asarray(idf, dtype=np.float32)), SIZE, CAPSULE
    ).eval()


def cosine(left, right):
    return float(left @ right / max(left.norm() * right.norm(), 1e-8))


def features_by_loops(question, answer, idf):
    table = vectors()
    asked = {word for word in question if idf[word] > 0}
    shared = asked & set(answer)
    others = [word for word in answer if idf[word] > 0]
    nearest = {word: max([0.0, *(cosine(table[word], table[other]) for other in others)]) for word in asked}
    total = sum(idf[word] for word in asked) or 1e-6
    length = math.log(1 + len(answer)) - 3
    return [
        len(shared) / max(len(asked), 1),
        sum(idf[word] for word in shared) / total,
        sum(idf[word] for word in shared) / 10,
        sum(idf[word] * nearest[word] for word in asked) / total,
        sum(idf[word] * max(0.0, nearest[word] - 0.4) / 0.6 for word in asked) / total,
        cosine(sum(table[word] for word in question), sum(table[word] for word in answer)),
        cosine(
            sum((idf[word] * table[word] for word in asked), torch.zeros(SIZE)),
            sum((idf[word] * table[word] for word in answer), torch.zeros(SIZE)),
        ),
        length,
        length**2,
    ]


@given(rows, rows, st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=WORDS, max_size=WORDS))
def test_features_equal_loops_over_words(question, answer, idf):
    features = match_of(idf).features(reading(question), reading(answer))
    expected = torch.tensor([features_by_loops(question, answer, idf)])
    torch.testing.assert_close(features, expected, atol=1e-4, rtol=1e-4)


def test_a_word_that_weighs_nothing_is_never_shared():
    """As the unknown word does: two unknown words are not one word."""
    idf = [0.0, 0.0, *[1.0] * (WORDS - 2)]
    features = match_of(idf).features(reading([1, 2]), reading([1, 3]))
    assert features[0, :3].tolist() == [0, 0, 0]


def test_only_words_that_the_question_does_not_have_are_of_the_kind_asked_for():
    match = match_of(np.ones(WORDS))
    with torch.no_grad():
        match.word_kind.weight.zero_()
        match.word_kind.weight[0, 0] = 1.0
        match.word_kind.bias.fill_(-torch.inf)
        match.word_kind.bias[0] = 0.0
        match.asked_kind.weight.zero_()
        match.asked_kind.bias.zero_()
        match.asked_kind.bias[0] = 2.0
    table, answer = vectors(), [3, 5, 6]
    kind = match.kind(reading([5, 7]), reading(answer))
    expected = 2 * max(torch.sigmoid(table[word, 0]) for word in (3, 6))
    torch.testing.assert_close(kind.item(), expected.item())
    assert match.kind(reading([5, 7]), reading([5, 5])).item() == 0


def test_a_token_is_first_once():
    assert is_first(torch.tensor([[4, 4, 2, 4], [0, 1, 0, 0]])).tolist() == [
        [True, False, True, False],
        [True, True, False, False],
    ]


def test_nothing_counted_is_near_nothing():
    words = torch.randn(1, 2, 3)
    assert largest_cosines(words, words, torch.zeros(1, 2, dtype=torch.bool)).tolist() == [[0, 0]]
    torch.testing.assert_close(
        largest_cosines(words, words, torch.ones(1, 2, dtype=torch.bool)), torch.ones(1, 2)
    )
