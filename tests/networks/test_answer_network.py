"""Question and answer, one capsule each, and their cosine."""

import pytest
import torch
from tiny_networks import (
    CAPSULE_ROUTINGS,
    LABEL_ROUTINGS,
    VOCABULARY,
    name_of,
    tiny_answer_network,
    tiny_config,
    token_rows,
)

from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.networks.build import build_network

ALONE = [  # the capsules' cosine without the words
    *(
        ("label-query", {"routing": r, "condensed": m, "overlap": False})
        for r in LABEL_ROUTINGS
        for m in (4, 0)
    ),
    *(("paper", {"routing": r, "condensed": m}) for r in CAPSULE_ROUTINGS for m in (4, 0)),
]
WITH_WORDS = [
    ("label-query", {}),
    ("label-query", {"encoder": "bilstm"}),
    ("paper", {"overlap": True}),
    ("cap-zhao", {"overlap": True}),
]
capsules_alone = pytest.mark.parametrize(("model", "settings"), ALONE, ids=name_of)
every_variant = pytest.mark.parametrize(("model", "settings"), [*ALONE, *WITH_WORDS], ids=name_of)

QUESTION_OF = torch.tensor([0, 0, 1])


def batch(width=None):
    return token_rows(6, 3, width=width), token_rows(14, 5, 1, width=width, seed=9), QUESTION_OF


@every_variant
def test_gradients_are_finite_and_reach_every_parameter(model, settings):
    network = tiny_answer_network(model, **settings).train()
    loss = answer_loss("pointwise", network(*batch()), torch.tensor([1, 0, 1]), QUESTION_OF)
    loss.backward()
    for name, parameter in network.named_parameters():
        if name == "text.em_costs":  # with one output, nothing is left for EM's costs to decide
            continue
        if not parameter.requires_grad:
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@capsules_alone
def test_the_score_is_the_scaled_cosine_of_two_capsules(model, settings):
    network = tiny_answer_network(model, **settings)
    questions, answers, question_of = batch()
    with torch.no_grad():
        asked, answered = network.text(questions), network.text(answers)
        scores = network(questions, answers, question_of)
    assert asked.shape == (2, 8)
    for candidate in range(3):
        q, a = asked[question_of[candidate]], answered[candidate]
        expected = network.scale * (q @ a) / (q.norm() * a.norm()) + network.offset
        torch.testing.assert_close(scores[candidate], expected, atol=1e-4, rtol=1e-4)


@every_variant
def test_filling_rows_up_further_changes_nothing(model, settings):
    network = tiny_answer_network(model, **settings)
    with torch.no_grad():
        torch.testing.assert_close(network(*batch(width=20)), network(*batch()), atol=1e-5, rtol=0)


@capsules_alone
def test_a_text_answers_itself_best(model, settings):
    network = tiny_answer_network(model, **settings)
    rows = token_rows(6, 3)
    with torch.no_grad():
        itself = network(rows, rows, torch.tensor([0, 1]))
    torch.testing.assert_close(itself, (network.scale + network.offset).detach().expand(2))


@pytest.mark.parametrize(("model", "settings"), WITH_WORDS, ids=name_of)
def test_what_the_words_say_is_added_to_the_scaled_cosine(model, settings):
    network, (questions, answers, question_of) = tiny_answer_network(model, **settings), batch()
    with torch.no_grad():
        scores = network(questions, answers, question_of)
        asked, answered = network.text.read(questions).of(question_of), network.text.read(answers)
        words = network.match(asked, answered)
        cosine = torch.cosine_similarity(network.text(questions)[question_of], network.text(answers))
    torch.testing.assert_close(scores, network.scale * cosine + network.offset + words)


def test_half_precision_gives_float32_scores():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = tiny_answer_network("label-query")(*batch())
    assert scores.dtype == torch.float32


def test_a_network_that_does_not_rank_answers_is_refused():
    with pytest.raises(TypeError, match="kim-cnn has no network for answers"):
        build_network(tiny_config("kim-cnn").model_copy(update={"task": "answers"}), VOCABULARY)


def random_candidates():
    torch.manual_seed(2)
    question_of = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])
    labels = torch.tensor([1, 0, 0, 1, 1, 0, 0, 1])
    return torch.randn(8), labels, question_of


def test_pointwise_loss_equals_a_loop():
    logits, labels, question_of = random_candidates()
    terms = []
    for logit, label in zip(logits, labels, strict=True):
        probability = 1 / (1 + torch.exp(-logit))
        terms.append(-torch.log(probability if label else 1 - probability))
    torch.testing.assert_close(
        answer_loss("pointwise", logits, labels, question_of), torch.stack(terms).mean()
    )


def test_pairwise_loss_equals_a_loop():
    logits, labels, question_of = random_candidates()
    terms = [
        torch.log(1 + torch.exp(logits[wrong] - logits[right]))
        for right in range(8)
        for wrong in range(8)
        if question_of[right] == question_of[wrong] and labels[right] == 1 and labels[wrong] == 0
    ]
    assert len(terms) == 3
    torch.testing.assert_close(
        answer_loss("pairwise", logits, labels, question_of), torch.stack(terms).mean()
    )


def test_pairwise_loss_without_pairs_is_zero_and_has_a_gradient():
    logits = torch.randn(3, requires_grad=True)
    loss = answer_loss("pairwise", logits, torch.tensor([1, 1, 0]), torch.tensor([0, 0, 1]))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.tolist() == [0, 0, 0]
