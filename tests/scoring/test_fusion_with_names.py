"""How well names match is weighed like the rest, and labels without examples by rules of their own."""

import json

import numpy as np
from scipy.special import expit

from nlpcapsule.scoring.fusion import CandidateFeatures, Fusion

NAMED = 12  # where the weights of names begin: m, k, m², k²; the same by f; the same by e; e s, e


def made_up(weights, documents=4000, candidates=20, seed=0):
    """Features in which a third of the candidates have no examples, and labels as the weights say."""
    random = np.random.default_rng(seed)
    network, lexical = random.normal(size=(2, documents, candidates))
    shares, frequency, *names = random.random((4, documents, candidates))
    frequency = np.where(random.random(frequency.shape) < 1 / 3, 0, 0.2 + 0.8 * frequency)
    evidence = CandidateFeatures(
        network, lexical, shares, random.random(documents), frequency, np.stack(names, -1)
    )
    right = random.random(network.shape) < expit(Fusion(weights, weights)(evidence))
    return evidence, right


def test_the_features_of_names_are_products_with_what_is_known_of_the_label():
    one = np.ones((1, 2))
    names = np.array([[[3.0, 2.0], [3.0, 2.0]]])
    evidence = CandidateFeatures(2 * one, one, one, np.ones(1), np.array([[0.0, 0.5]]), names)
    assert evidence.expanded()[0, :, NAMED:].tolist() == [
        [3, 2, 9, 4, 0, 0, 0, 0, 3, 2, 9, 4, 2, 1],
        [3, 2, 9, 4, 1.5, 1, 4.5, 2, 0, 0, 0, 0, 0, 0],
    ]


def test_without_names_there_are_no_such_features():
    one = np.ones((1, 2))
    assert CandidateFeatures(one, one, one, np.ones(1), one).expanded().shape == (1, 2, NAMED)


def test_what_names_are_worth_is_learned_for_labels_with_and_without_examples():
    weights = np.zeros(26)
    weights[[0, 3]] = 0.8, -2.0
    weights[[NAMED, NAMED + 4, NAMED + 10, NAMED + 12, NAMED + 13]] = 1.5, 1.0, 2.0, -0.4, -1.0
    found = Fusion.fit(*made_up(weights))
    evidence, _ = made_up(weights, seed=1)
    # Many of the features go together, so what counts is what they say in sum.
    assert np.corrcoef(found(evidence).ravel(), Fusion(weights, weights)(evidence).ravel())[0, 1] > 0.99
    blind = Fusion(*(np.where(np.arange(26) < NAMED, w, 0) for w in (found.first, found.weights)))
    assert np.corrcoef(blind(evidence).ravel(), Fusion(weights, weights)(evidence).ravel())[0, 1] < 0.9


def test_labels_without_examples_that_are_never_right_are_ranked_by_what_names_are_worth_elsewhere():
    weights = np.zeros(26)
    weights[[0, 3, NAMED]] = 0.8, -2.0, 1.5
    evidence, right = made_up(weights)
    found = Fusion.fit(evidence, right & (evidence.frequency > 0))
    evidence, _ = made_up(weights, seed=1)
    unused = evidence.frequency == 0
    scores = found(evidence)
    assert np.corrcoef(scores[unused], evidence.names[..., 0][unused])[0, 1] > 0.3
    assert expit(scores[unused]).mean() < 0.01
    assert expit(scores[~unused]).mean() > 0.1


def test_weights_with_names_go_through_json():
    fusion = Fusion(np.arange(26.0), np.arange(26.0), 0.5, 1.0)
    again = Fusion.from_json(json.loads(json.dumps(fusion.to_json())))
    assert again.weights.tolist() == fusion.weights.tolist()
