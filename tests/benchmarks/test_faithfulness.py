"""The measurement of faithfulness deletes the words that it says, and compares documents with themselves."""

import numpy as np
import pytest

from benchmarks import faithfulness as module
from benchmarks.faithfulness import HEAVIEST, MATCHED, NAMED, RANDOM, faithfulness
from nlpcapsule import CapsuleClassifier
from nlpcapsule.data.documents import Document
from nlpcapsule.sample import load_documents


@pytest.fixture(scope="module")
def model():
    rows = load_documents("train")[:150]
    classifier = CapsuleClassifier("one-vs-rest").fit(
        [row.text for row in rows], [row.labels for row in rows]
    )
    return classifier.model_


@pytest.fixture(scope="module")
def documents():
    rows = load_documents("test-seen")
    return [Document(f"{rows[place].text} {rows[place + 1].text}") for place in range(0, 24, 2)]


def test_named_words_lower_the_probability_more_than_random_words(model, documents):
    found = faithfulness(model, [*documents, Document("too short")])
    assert (found["documents"], found["too short"]) == (len(documents), 1)
    assert found["fall"][NAMED]["mean"] > 3 * found["fall"][RANDOM]["mean"]
    assert found["fall"][NAMED]["low"] <= found["fall"][NAMED]["mean"] <= found["fall"][NAMED]["high"]
    difference = found["fall"][NAMED]["mean"] - found["fall"][HEAVIEST]["mean"]
    assert found["named - tf-idf heaviest"]["mean"] == pytest.approx(difference, abs=2e-4)


def test_the_same_seed_gives_the_same_figures(model, documents):
    assert faithfulness(model, documents[:3]) == faithfulness(model, documents[:3])
    assert faithfulness(model, documents[:3], seed=2) != faithfulness(model, documents[:3])


def test_the_fall_is_that_of_the_whole_text_without_the_words(model, documents):
    case = module._case(model, documents[0].text)
    words = case.words[:4]
    text = documents[0].text
    for start, end in sorted((span for word in words for span in word.spans), reverse=True):
        text = text[:start] + text[end:]
    before, after = model.probabilities(model.encode([documents[0].text, text]))[:, case.label]
    assert case.deleted([words])[0] == pytest.approx(before - after, abs=1e-5)


def test_random_words_are_different_ones_and_as_many_mentions_are_at_least_as_many(model, documents):
    case = module._case(model, documents[0].text)
    random = np.random.default_rng(0)
    drawn = module._drawn(case.words, random)
    assert len({word.text for word in drawn}) == module.WORDS
    matched = module._drawn_mentions(case.words, 15, random)
    mentions = [len(word.spans) for word in matched]
    assert sum(mentions[:-1]) < 15 <= sum(mentions)
    assert MATCHED in faithfulness(model, documents[:1])["fall"]


def test_a_ratio_has_the_interval_of_its_documents():
    ours, theirs = np.array([0.6, 0.4, 0.8, 0.6]), np.array([0.2, 0.2, 0.2, 0.2])
    found = module._ratio(ours, theirs)
    assert found["mean"] == 3
    assert 2 <= found["low"] < 3 < found["high"] <= 4
