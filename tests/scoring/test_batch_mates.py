"""What is predicted for a document depends on nothing but the document."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import (
    CANDIDATES,
    LABELS,
    WORDS,
    questions,
    random_answer_model,
    random_label_model,
    texts,
    with_batch,
)
from scipy.special import expit

from nlpcapsule.capsules import pair_transforms
from nlpcapsule.scoring.models import AnswerModel

PER_CLASS = "paper, a matrix per label"
NETWORKS = [
    *(("label-query", routing) for routing in ("dot", "kde", "adaptive-kde")),
    *(("paper", routing) for routing in ("dynamic", "em", "kde", "kde-em", "adaptive-kde")),
    *((PER_CLASS, routing) for routing in ("dynamic", "adaptive-kde")),
    *(("official", routing) for routing in ("kde", "adaptive-kde")),
    ("kim-cnn", None),
    ("xml-cnn", None),
    ("bow-cnn", None),
    ("released-xml-cnn", None),
    ("cap-zhao", None),
    ("convolution-linear", None),
]
ANSWER_NETWORKS = [("label-query", "dot"), ("label-query", "adaptive-kde"), ("paper", "adaptive-kde")]
TOLERANCE = 1e-5

answer_model = cache(random_answer_model)


@cache
def label_model(model, routing):
    if model == PER_CLASS:
        return random_label_model("paper", routing, votes="class", epsilon=0.02)
    return random_label_model(model, routing)


def batched(model, size):
    if isinstance(model, AnswerModel):
        inference = model.config.inference.model_copy(update={"batch_size": size})
        return replace(model, config=model.config.model_copy(update={"inference": inference}))
    return replace(model, scorer=with_batch(model.scorer, size))


def by_label(rankings, row):
    return dict(zip(rankings.labels[row].tolist(), rankings.scores[row].tolist(), strict=True))


def assert_same_document(one, row, other, other_row):
    """Same labels, scores within the tolerance, and same order unless scores are as good as equal."""
    first, second = by_label(one, row), by_label(other, other_row)
    assert first.keys() == second.keys()
    assert all(abs(first[label] - second[label]) <= TOLERANCE for label in first)
    for left, right in zip(one.labels[row], other.labels[other_row], strict=True):
        assert left == right or abs(first[left] - first[right]) <= TOLERANCE


@pytest.mark.parametrize(("model", "routing"), NETWORKS)
@settings(max_examples=10)
@given(
    documents=st.lists(texts(), min_size=2, max_size=9),
    batch=st.integers(1, 10),
    order=st.randoms(use_true_random=False),
)
def test_labels_are_ranked_alike_in_any_company(model, routing, documents, batch, order):
    ranker = label_model(model, routing)
    alone = batched(ranker, 1).rank_tokens(ranker.encode(documents), len(LABELS))
    places = list(range(len(documents)))
    order.shuffle(places)
    shuffled = ranker.encode([documents[place] for place in places])
    together = batched(ranker, batch).rank_tokens(shuffled, len(LABELS))
    for row, place in enumerate(places):
        assert_same_document(together, row, alone, place)
    if routing is not None:
        assert together.iterations.tolist() == [alone.iterations[place] for place in places]


@pytest.mark.parametrize(("model", "routing"), ANSWER_NETWORKS)
@settings(max_examples=10)
@given(
    asked=st.lists(questions(), min_size=2, max_size=5),
    batch=st.integers(1, 6),
    order=st.randoms(use_true_random=False),
)
def test_answers_are_ranked_alike_in_any_company(model, routing, asked, batch, order):
    ranker = answer_model(model, routing)
    alone = [expit(batched(ranker, 1).log_odds([question])[0]) for question in asked]
    places = list(range(len(asked)))
    order.shuffle(places)
    together = [expit(row) for row in batched(ranker, batch).log_odds([asked[place] for place in places])]
    for row, place in enumerate(places):
        np.testing.assert_allclose(together[row], alone[place], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("model", "routing"), ANSWER_NETWORKS)
@settings(max_examples=6)
@given(question=questions())
def test_an_answers_score_does_not_depend_on_the_other_candidates(model, routing, question):
    ranker = answer_model(model, routing)
    together = ranker.log_odds([question])[0]
    alone = [ranker.log_odds([replace(question, candidates=(one,))])[0][0] for one in question.candidates]
    np.testing.assert_allclose(expit(together), expit(alone), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("condensed", [0, 5])
def test_without_compression_padding_is_no_capsule(condensed):
    ranker = random_label_model("label-query", "adaptive-kde", condensed=condensed)
    documents = ["batan", " ".join(WORDS[:18])]
    together = ranker.rank_tokens(ranker.encode(documents), len(LABELS))
    for place, document in enumerate(documents):
        assert_same_document(together, place, ranker.rank_tokens(ranker.encode([document]), len(LABELS)), 0)


@pytest.mark.parametrize("model", ["label-query", "paper", PER_CLASS, "official"])
def test_these_networks_really_give_documents_different_numbers_of_iterations(model):
    """Or the tests above would say nothing about adaptive routing."""
    ranker = label_model(model, "adaptive-kde")
    generator = random.Random(0)
    documents = [" ".join(generator.choices(WORDS, k=generator.randint(1, 20))) for _ in range(40)]
    rankings = ranker.rank_tokens(ranker.encode(documents), 3)
    assert len(set(rankings.iterations.tolist())) > 1
    scored = np.isfinite(rankings.agreement).sum(axis=1)
    assert (scored <= rankings.iterations).all()


@pytest.mark.parametrize(("model", "routing"), NETWORKS)
def test_these_networks_really_tell_documents_apart(model, routing):
    ranker = label_model(model, routing)
    documents = [" ".join(WORDS[:10]), " ".join(WORDS[10:22])]
    rankings = ranker.rank_tokens(ranker.encode(documents), len(LABELS))
    assert by_label(rankings, 0) != by_label(rankings, 1)
    assert np.ptp(rankings.scores[0]) > 1e-3


@pytest.mark.parametrize("routing", ["kde", "adaptive-kde"])
def test_matrices_gathered_for_few_documents_at_a_time_rank_alike(routing, monkeypatch):
    """Each document has candidates of its own, whose matrices may be too many to be gathered at once."""
    ranker = label_model("paper", routing)
    generator = random.Random(1)
    documents = [" ".join(generator.choices(WORDS, k=generator.randint(1, 20))) for _ in range(9)]
    tokens = ranker.encode(documents)
    together = batched(ranker, 9).rank_tokens(tokens, len(LABELS))
    assert len({tuple(sorted(labels)) for labels in together.labels.tolist()}) > 1
    per_document = CANDIDATES * ranker.network.transform.rows.shape[1]
    for few in (1, 2):
        monkeypatch.setattr(pair_transforms, "_GATHERED", few * per_document)
        in_parts = batched(ranker, 9).rank_tokens(tokens, len(LABELS))
        for row in range(len(documents)):
            assert_same_document(in_parts, row, together, row)


@pytest.mark.parametrize("model", ["paper", PER_CLASS, "official"])
def test_only_nominated_labels_are_ranked(model):
    ranker = label_model(model, "kde")
    tokens = ranker.encode([" ".join(WORDS[:10])])
    nominated = replace(ranker, scorer=ranker.scorer.nominator).rank_tokens(tokens, CANDIDATES)
    ranked = ranker.rank_tokens(tokens, len(LABELS))
    assert set(ranked.labels[0]) == set(nominated.labels[0])
    assert len(ranked.labels[0]) == CANDIDATES
