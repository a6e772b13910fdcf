"""The default network: labels that ask a document's capsules."""

import pytest
import torch
from tiny_networks import LABELS, tiny_network, token_rows

from nlpcapsule.capsules.routing.label_query import KERNEL_GAIN, route_labels
from nlpcapsule.networks.query_routing import WholeDocument, largest_states


def logits_of(network, tokens, outputs=None):
    with torch.no_grad():
        return network(tokens, outputs).logits


@pytest.mark.parametrize("document_size", [6, 0])
@pytest.mark.parametrize("condensed", [4, 0])
@pytest.mark.parametrize("routing", ["dot", "kde"])
def test_a_label_scores_the_same_whichever_others_are_asked_for(routing, condensed, document_size):
    network = tiny_network("label-query", routing=routing, condensed=condensed, document_size=document_size)
    rows = token_rows(14, 9, 2)
    every = logits_of(network, rows)  # (B, n)
    shared = torch.tensor([7, 2])
    torch.testing.assert_close(logits_of(network, rows, shared), every[:, shared])
    own = torch.tensor([[7, 2], [0, 1], [8, 3]])
    torch.testing.assert_close(logits_of(network, rows, own), every.gather(1, own))


def test_the_chain_equals_its_equations_in_loops():
    network = tiny_network("label-query", routing="kde")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # so that slots and biases are not all alike
        network.document.encoder.embedding.table.weight[0] = 0
        row, labels = token_rows(9), network.labels
        states = network.document.encoder(row)[0][0]  # (l, H)
        capsules = []
        for query in network.document.compress_query:
            share = torch.softmax(states @ query, dim=0)  # (l,)
            pooled = sum(share[t] * states[t] for t in range(9))
            capsules.append(network.document.norm(network.document.to_capsule(pooled)))
        u = torch.stack(capsules)  # (m, d)
        first = torch.stack(
            [
                torch.stack([labels.query[j] @ network.key(u[i]) + labels.slot[j, i] for i in range(4)])
                for j in range(LABELS)
            ]
        )
        v = route_labels(u[None], first[None], agreement="kde", gate=network.gate).label_capsules[0]
        whole = network.whole.mlp(states.max(dim=0).values)  # (e,)
        expected = [
            network.mlp(v[j]) @ labels.output[j] + whole @ labels.whole[j] + labels.bias[j]
            for j in range(LABELS)
        ]
    torch.testing.assert_close(logits_of(network, row)[0], torch.stack(expected))


def test_without_a_document_term_the_whole_has_no_weights():
    network = tiny_network("label-query", document_size=0)
    assert network.whole is None
    assert "whole" not in network.labels.rows_of(None)


def test_padding_is_never_the_largest_state():
    torch.manual_seed(0)
    whole, rows = WholeDocument(state_size=5, size=3, dropout=0.0), torch.randn(4, 3)
    states = -1 - torch.rand(1, 2, 5)
    padded = torch.cat([states, torch.zeros(1, 3, 5)], dim=1)
    with torch.no_grad():
        alone = whole(largest_states(states, torch.tensor([[True, True]])), rows)
        largest = largest_states(padded, torch.arange(5)[None] < 2)
        torch.testing.assert_close(whole(largest, rows), alone)


def test_without_compression_every_real_token_is_a_capsule():
    network = tiny_network("label-query", condensed=0)
    tokens = token_rows(5, 3)
    capsules, mask = network.document.condense(*network.document.encoder(tokens))
    assert capsules.shape == (2, 5, 8)
    assert mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]


def test_with_compression_there_are_m_capsules_whatever_the_length():
    network = tiny_network("label-query", condensed=4)
    for tokens in (token_rows(5, 3), token_rows(1)):
        capsules, mask = network.document.condense(*network.document.encoder(tokens))
        assert capsules.shape == (len(tokens), 4, 8)
        assert mask is None


def test_adaptive_routing_takes_at_most_the_set_iterations():
    rows = token_rows(14, 9, 2)
    adaptive = {"routing": "adaptive-kde"}
    assert tiny_network("label-query", **adaptive, iterations=1)(rows).iterations.tolist() == [1, 1, 1]
    never = tiny_network("label-query", **adaptive, iterations=3, epsilon=1e-12, bandwidth=1e-3).double()
    assert never(rows).iterations.tolist() == [3, 3, 3]
    soon = tiny_network("label-query", **adaptive, iterations=6, epsilon=1e6)
    assert soon(rows).iterations.tolist() == [2, 2, 2]


def test_only_dot_agreement_needs_a_projection():
    assert tiny_network("label-query", routing="dot").agreement is not None
    assert tiny_network("label-query", routing="kde").agreement is None


def test_dropout_acts_in_training_only():
    network = tiny_network("label-query", token_dropout=0.5, capsule_dropout=0.5)
    rows = token_rows(14)
    assert torch.equal(network(rows).logits, network(rows).logits)
    network.train()
    assert not torch.equal(network(rows).logits, network(rows).logits)


def test_only_adaptive_routing_scales_its_votes_unless_its_name_says_otherwise():
    assert tiny_network("label-query", routing="adaptive-kde", bandwidth=2.0).vote_scale.bandwidth == 2.0
    for settings in ({"routing": "adaptive-kde-unscaled"}, {"routing": "kde"}, {"routing": "dot"}):
        network = tiny_network("label-query", **settings)
        assert network.vote_scale is None
        assert network.gate.requires_grad


def test_scaled_votes_take_the_papers_step():
    network = tiny_network("label-query", routing="adaptive-kde", bandwidth=2.0)
    assert KERNEL_GAIN * network.gate == pytest.approx(1.0)  # a number, so nothing to learn


def test_training_teaches_the_scale_and_ranking_leaves_it():
    network = tiny_network("label-query", routing="adaptive-kde")
    rows = token_rows(14, 9, 2)
    network(rows)
    assert network.vote_scale.batches.item() == 0
    network.train()(rows)
    assert network.vote_scale.batches.item() == 1
    assert network.vote_scale.log_spread.item() != 0.0
