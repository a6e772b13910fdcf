"""Attention and couplings that scores come from."""

import pytest
import torch
from tiny_networks import CAPSULE_ROUTINGS, LABEL_ROUTINGS, tiny_network, token_rows

LENGTHS = (14, 9, 2)
ROWS = token_rows(*LENGTHS)
CAPSULES = [4, 0]  # condensed, and one per token
OUTPUTS = [None, torch.tensor([7, 2]), torch.tensor([[7, 2, 2], [0, 1, 8], [8, 3, 0]])]


def explained(network, outputs=None, valid=None):
    with torch.no_grad():
        return network(ROWS, outputs, valid, explain=True)


def networks():
    for routing in LABEL_ROUTINGS:
        for condensed in CAPSULES:
            yield pytest.param("label-query", {"routing": routing, "condensed": condensed})
    for routing in CAPSULE_ROUTINGS:
        for votes in ("pair", "class"):
            yield pytest.param("paper", {"routing": routing, "votes": votes})


def stirred(model, settings):
    """Weights large enough for couplings to differ."""
    network = tiny_network(model, **settings)
    torch.manual_seed(2)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
        if model == "label-query":
            network.document.encoder.embedding.table.weight[0] = 0
    return network


@pytest.mark.parametrize(("model", "settings"), list(networks()))
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_scores_are_the_same_with_and_without_an_explanation(model, settings, outputs):
    network = stirred(model, settings)
    with torch.no_grad():
        plain = network(ROWS, outputs)
    told = explained(network, outputs)
    assert plain.explanation is None
    assert torch.equal(told.logits, plain.logits)
    assert torch.equal(told.iterations, plain.iterations)
    torch.testing.assert_close(told.agreement, plain.agreement, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("model", "settings"), list(networks()))
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_the_couplings_of_each_label_sum_to_one(model, settings, outputs):
    told = explained(stirred(model, settings), outputs)
    coupling = told.explanation.coupling
    assert coupling.shape[:2] == told.logits.shape
    assert (coupling >= 0).all()
    torch.testing.assert_close(coupling.sum(dim=-1), torch.ones_like(told.logits))
    assert coupling.std(dim=1).max() > 1e-4  # labels differ


@pytest.mark.parametrize("condensed", CAPSULES)
def test_capsules_attend_to_real_tokens_alone(condensed):
    attention = explained(stirred("label-query", {"condensed": condensed})).explanation.attention
    assert attention.shape == (3, condensed or 14, 14)
    for shares, length in zip(attention, LENGTHS, strict=True):
        real = shares if condensed else shares[:length]  # without compression capsules are tokens
        torch.testing.assert_close(real[:, :length].sum(dim=1), torch.ones(len(real)))
        assert not shares[:, length:].any()


def test_attention_is_what_capsules_are_pooled_by():
    network = stirred("label-query", {})
    attention = explained(network).explanation.attention
    with torch.no_grad():
        states, mask = network.document.encoder(ROWS)
        capsules, _ = network.document.condense(states, mask)
        pooled = network.document.norm(network.document.to_capsule(attention @ states))
    torch.testing.assert_close(pooled, capsules)


def test_padding_is_coupled_with_no_label_where_tokens_are_capsules():
    coupling = explained(stirred("label-query", {"condensed": 0})).explanation.coupling
    for shares, length in zip(coupling, LENGTHS, strict=True):
        assert not shares[:, length:].any()


def test_the_paper_has_no_attention_over_tokens():
    assert explained(tiny_network("paper")).explanation.attention is None


def test_labels_that_only_fill_up_are_coupled_with_nothing_in_the_paper():
    valid = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    coupling = explained(stirred("paper", {}), OUTPUTS[2], valid).explanation.coupling
    torch.testing.assert_close(coupling.sum(dim=-1), valid.float())


@pytest.mark.parametrize("model", ["label-query", "paper"])
def test_an_explanation_has_no_part_in_the_gradient(model):
    told = stirred(model, {}).train()(ROWS, explain=True)
    assert told.logits.requires_grad
    assert not told.explanation.coupling.requires_grad
    assert told.explanation.attention is None or not told.explanation.attention.requires_grad


def test_explaining_in_training_steers_the_scale_of_votes_as_ever():
    """Of two iterations at most the second is not scored, with an explanation or without."""
    settings = {"routing": "adaptive-kde", "iterations": 2}
    plain, told = (tiny_network("label-query", **settings).train() for _ in range(2))
    for network, explain in ((plain, False), (told, True)):
        torch.manual_seed(0)
        network(ROWS, explain=explain)
    assert plain.vote_scale.bandwidth == told.vote_scale.bandwidth
