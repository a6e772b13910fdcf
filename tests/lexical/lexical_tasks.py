"""Small tasks that every lexical system must solve."""

from collections import Counter
from functools import cache

import numpy as np

from label_vocabulary import vocabulary_of
from nlpcapsule.data.documents import Document
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.lexical.ranker import Fitting
from nlpcapsule.sample import load_documents

WORDS, LABELS = 60, 12
PADDING, UNKNOWN, NEVER_SEEN = 0, 1, WORDS - 1
COMMON_LABELS = 12


def documents_of_rule(count, seed):
    """Word 2 + k stands for label k, one label each; the other words mean nothing."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % LABELS
    noise = generator.integers(2 + LABELS, NEVER_SEEN, (count, 5))
    tokens = generator.permuted(np.column_stack([2 + labels, noise]), axis=1)
    return EncodedDocuments(Ragged.from_rows(tokens), Ragged.from_rows(labels[:, None]))


def fitting_in(folder, words=WORDS, labels=LABELS, seed=1, **options):
    names = [f"w{number}" for number in range(words)]
    return Fitting(names, labels, ignored=(PADDING, UNKNOWN), seed=seed, checkpoint=folder, **options)


def precision_at_1(ranker, documents):
    best = ranker.top(documents.tokens, 1)[0][:, 0]
    return np.mean([label in row for label, row in zip(best, documents.labels, strict=True)])


def assert_same_rankings(one, other, tokens, top_k=5):
    for first, second in zip(one.top(tokens, top_k), other.top(tokens, top_k), strict=True):
        np.testing.assert_array_equal(first, second)


def assert_rows_are_ranked(labels, log_odds, width):
    """Exactly `width` labels a row, none twice, best first, equal scores by label id."""
    assert labels.dtype == np.int64
    assert log_odds.dtype == np.float64
    assert labels.shape == log_odds.shape == (len(labels), width)
    assert np.isfinite(log_odds).all()
    for row, scores in zip(labels.tolist(), log_odds.tolist(), strict=True):
        assert len(set(row)) == width
        by_score_then_id = sorted(zip(row, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
        assert [label for label, _ in by_score_then_id] == row


def assert_batch_mates_do_not_matter(ranker, tokens):
    """Each document alone, all in reverse: the same labels and the very same scores."""
    labels, log_odds = ranker.top(tokens, 5)
    back = ranker.top(tokens.take(range(len(tokens))[::-1]), 5)
    np.testing.assert_array_equal(back[0][::-1], labels)
    np.testing.assert_array_equal(back[1][::-1], log_odds)
    for row in range(len(tokens)):
        alone = ranker.top(tokens.take([row]), 5)
        np.testing.assert_array_equal(alone[0][0], labels[row])
        np.testing.assert_array_equal(alone[1][0], log_odds[row])


@cache
def sample_task():
    """Letters of the sample with their common labels: training and dev documents, words, labels."""
    counts = Counter(label for row in load_documents("train") for label in row.labels)
    common = {label for label, _ in counts.most_common(COMMON_LABELS)}
    train, dev = (_with_labels(part, common, count) for part, count in (("train", 400), ("dev", 100)))
    tokenizer = WordTokenizer.train([row.text for row in train])
    labels = vocabulary_of([row.labels for row in train])
    encoded = [encode_documents(part, tokenizer, labels, max_tokens=80) for part in (train, dev)]
    return encoded[0], encoded[1], tokenizer.size, len(labels)


def _with_labels(part, common, count):
    kept = (
        Document(row.text, tuple(label for label in row.labels if label in common))
        for row in load_documents(part)
    )
    return [row for row in kept if row.labels][:count]


def assert_beats_the_majority_label_on_the_sample(ranker_type, settings, folder):
    train, dev, words, labels = sample_task()
    ranker = ranker_type.fit(settings, train, fitting_in(folder, words, labels))
    majority = np.bincount(train.labels.values).argmax()
    always_majority = np.mean([majority in row for row in dev.labels])
    assert precision_at_1(ranker, dev) > 1.5 * always_majority
