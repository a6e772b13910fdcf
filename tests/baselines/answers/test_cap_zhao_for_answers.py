"""Cap-Zhao for answers: one capsule per text, by the layers that rank labels."""

import numpy as np
import pytest
import torch
from planted_texts import fitted, planted_questions

from class_constants import config_of
from nlpcapsule.model_folder import load_model
from nlpcapsule.networks.answer_ranker import answer_loss
from nlpcapsule.networks.build import build_network

VOCABULARY = 30
SIZES = {"max_tokens": 11, "embedding_size": 8, "filters": 8, "channels": 3, "capsule_size": 6}
QUESTION_OF = torch.tensor([0, 0, 1])
every_variant = pytest.mark.parametrize("variant", ["A", "B"])


def network_of(**settings):
    config = config_of("answers", "cap-zhao", {**SIZES, **settings})
    network = build_network(config, VOCABULARY).eval()
    with torch.no_grad():  # or couplings would hardly move
        network.text.capsules.embedding.table.weight.mul_(8)
    return network


def batch(width=11):
    generator = torch.Generator().manual_seed(2)
    texts = torch.randint(1, VOCABULARY, (5, width), generator=generator)
    texts[0, 4:], texts[3, 1:] = 0, 0
    return texts[:2], texts[2:], QUESTION_OF


@every_variant
def test_the_score_is_the_scaled_cosine_of_the_mean_capsules(variant):
    network = network_of(variant=variant)
    questions, answers, question_of = batch()
    with torch.no_grad():
        scores = network(questions, answers, question_of)
        for candidate, question in enumerate(question_of):
            q, a = (
                torch.stack([chain.capsules[0, 0] for chain in network.text.capsules.route_text(row[None])])
                for row in (questions[question], answers[candidate])
            )
            assert q.shape == (1 if variant == "A" else 3, 6)
            q, a = q.mean(dim=0), a.mean(dim=0)
            expected = network.scale * (q @ a) / (q.norm() * a.norm()) + network.offset
            torch.testing.assert_close(scores[candidate], expected, atol=1e-4, rtol=1e-4)


@every_variant
def test_with_one_output_the_routing_still_chooses(variant):
    once, thrice = (network_of(variant=variant, iterations=iterations) for iterations in (1, 3))
    questions, _, _ = batch()
    with torch.no_grad():
        for chain in thrice.text.capsules.route_text(questions):  # inert: all equal
            assert np.ptp(chain.coupling.numpy()) > 1e-4
        assert not torch.allclose(once.text(questions), thrice.text(questions), rtol=1e-4, atol=0)


@every_variant
def test_gradients_are_finite_and_reach_every_parameter(variant):
    network = network_of(variant=variant).train()
    answer_loss("pointwise", network(*batch()), torch.tensor([1, 0, 1]), QUESTION_OF).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@every_variant
def test_a_pair_scores_the_same_alone_and_in_company(variant):
    network = network_of(variant=variant)
    questions, answers, question_of = batch()
    with torch.no_grad():
        together = network(questions, answers, question_of)
        for pair, question in enumerate(question_of):
            asked, answer = questions[question], answers[pair]
            alone = network(asked[asked != 0][None], answer[answer != 0][None], torch.tensor([0]))
            torch.testing.assert_close(alone[0], together[pair], atol=1e-5, rtol=0)


def test_planted_answers_are_learnt_and_the_opened_model_is_the_trained_one(tmp_path):
    questions = planted_questions(24)
    trained = fitted(
        tmp_path / "model",
        "cap-zhao",
        questions,
        max_tokens=9,
        min_count=1,
        variant="A",
        embedding_size=16,
        filters=16,
        channels=4,
        loss="pairwise",
        epochs=16,
        learning_rate=0.01,
        batch_size=8,
    )
    assert trained.evaluate(questions)["MAP"] > 0.9  # any order gives 0.52
    assert load_model(tmp_path / "model").rank(questions) == trained.rank(questions)
