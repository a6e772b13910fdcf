"""Answer rankers learn what is there to be learnt."""

import itertools
import random

import numpy as np
import pytest
from small_rankers import SIZES, mean_average_precision, questions_of, small_ranker, train_briefly

from benchmarks.sample.questions import ask_questions
from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.encoded import encode_questions
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.data.word_frequency import inverse_document_frequency

KINDS, FILLERS = range(2, 8), range(20, 40)  # a question of kind k is answered by what holds k + 10

# Sizes, learning rate and epochs with which each gets through in a few seconds.
SAMPLE_RUNS = [
    ("cnn-lr", {}, 1e-2, 3),
    ("severyn-cnn", {"filters": 50, "hidden": 32}, 1e-2, 3),
    ("cntn", {"filters": 24, "text_size": 32}, 5e-3, 6),
    ("lstm", {"state_size": 32, "hidden": 32, "pooling": "mean"}, 2e-2, 8),
    ("mv-lstm", {"state_size": 16, "hidden": 16}, 1e-2, 3),
    ("ntn-lstm", {"state_size": 16, "pooling": "mean"}, 1e-2, 4),
    ("hd-lstm", {"state_size": 32, "hidden": 32, "pooling": "mean"}, 1e-2, 2),
]


def planted_questions(count, seed=1):
    """Each question names its kind; one of its four candidates holds the sign of that kind."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        kind, *others = draw.sample(KINDS, 4)
        candidates = []
        for sign in (kind, *others):
            words = [sign + 10, *draw.sample(FILLERS, 3)]
            draw.shuffle(words)
            candidates.append((words, int(sign == kind)))
        rows.append(([kind, *draw.sample(FILLERS, 2)], candidates))
    return questions_of(rows)


def repeating_questions(count, words, seed=2):
    """One of a question's four candidates repeats a word of it, and nothing else tells them apart."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        drawn = draw.sample(words, 25)
        asked, *answers = (drawn[start : start + 5] for start in range(0, 25, 5))
        answers[0][2] = asked[3]
        rows.append((asked, [(answer, int(place == 0)) for place, answer in enumerate(answers)]))
    return questions_of(rows)


def random_order_map(questions):
    """The mean over all orders of AP: of N candidates, R right, Σ_k (1 + (k − 1)(R − 1)/(N − 1)) / (k N)."""
    expected = []
    for row in range(len(questions)):
        labels = questions.labels[questions.candidates(row)]
        n, right = len(labels), labels.sum()
        expected.append(sum((1 + (k - 1) * (right - 1) / (n - 1)) / k for k in range(1, n + 1)) / n)
    return float(np.mean(expected))


def test_the_formula_for_a_random_order_equals_the_mean_over_all_orders():
    labels = [1, 0, 1, 0, 0]
    precisions = [
        np.mean([sum(order[: k + 1]) / (k + 1) for k in range(5) if order[k]])
        for order in itertools.permutations(labels)
    ]
    questions = questions_of([([2], [([3], label) for label in labels])])
    assert random_order_map(questions) == pytest.approx(np.mean(precisions))


@pytest.mark.parametrize("name", SIZES)
def test_a_planted_sign_is_learnt(name):
    questions = planted_questions(40)
    network = small_ranker(name, embedding_size=16, overlap=False, dropout=0.0)
    train_briefly(network, questions, epochs=25)
    assert mean_average_precision(network, questions) > 0.9


@pytest.mark.parametrize("name", SIZES)
def test_a_repeated_word_is_noticed_among_words_never_seen(name):
    network = small_ranker(name, vocabulary_size=200, overlap=True, idf=np.ones(200), dropout=0.1)
    train_briefly(network, repeating_questions(400, range(2, 100)), epochs=3)
    assert mean_average_precision(network, repeating_questions(40, range(100, 200))) > 0.8


def sample_questions(part, seeds):
    """The sample's questions about mayors: a slice that small networks learn in seconds."""
    return [
        Question(asked.text, tuple(Candidate(text, label) for text, label in asked.candidates))
        for seed in seeds
        for asked in ask_questions(seed)[part]
        if asked.scene == "mayor"
    ]


@pytest.fixture(scope="module")
def sample():
    """Questions to train on, new ones to rank, and the words' weights."""
    train, new = sample_questions("train", range(12)), sample_questions("dev", range(12, 32))
    tokenizer = WordTokenizer.train(
        text for question in train for text in (question.text, *(c.text for c in question.candidates))
    )
    encoded = encode_questions(train, tokenizer, 24)
    idf = inverse_document_frequency(encoded.answers, tokenizer.size)
    return encoded, encode_questions(new, tokenizer, 24), idf


@pytest.mark.parametrize(
    ("name", "settings", "learning_rate", "epochs"),
    [
        pytest.param(*run, id=run[0], marks=[] if run[0] in ("cnn-lr", "hd-lstm") else pytest.mark.slow)
        for run in SAMPLE_RUNS
    ],
)
def test_new_sample_questions_are_ranked_better_than_at_random(name, settings, learning_rate, epochs, sample):
    train, new, idf = sample
    network = small_ranker(name, len(idf), idf, embedding_size=64, dropout=0.1, **settings)
    train_briefly(network, train, epochs, learning_rate)
    assert mean_average_precision(network, new) > random_order_map(new) + 0.05
