"""The paper's chain: its sizes, and its equations in loops."""

import pytest
import torch
from tiny_networks import LABELS, tiny_config, tiny_network, token_rows

from nlpcapsule.capsules.routing import ROUTINGS
from nlpcapsule.capsules.votes import FormedVotes
from nlpcapsule.config import PaperSettings
from nlpcapsule.models.paper import PaperNetwork
from nlpcapsule.models.routing_choice import route
from nlpcapsule.models.scored import log_odds


def on_paper(embedding_size, **settings):
    """A network of full size whose weights take no memory."""
    with torch.device("meta"):
        return PaperNetwork(
            PaperSettings(embedding_size=embedding_size, **settings), 100, label_count=3956, length=500
        )


def test_eurlex_has_the_sizes_of_the_paper():
    network = on_paper(300)
    assert network.document.convolution.map_sizes == [150, 149, 147]
    assert network.document.compression.weight.shape == (128, 14_272)
    assert network.document.count == 128
    parts = {
        "convolution": 32 * 500 * (2 + 4 + 8) + 3 * 32,
        "primary": 3 * 32 * (16 + 16),
        "compression": 14_272 * 128,
        "transform": 3956 * 16 * 16,
        "embedding": 100 * 300,
    }
    for part, expected in parts.items():
        counts = [p.numel() for name, p in network.named_parameters() if part in name.split(".")[:2]]
        assert sum(counts) == expected, part
    assert sum(p.numel() for p in network.parameters()) == sum(parts.values())


def test_glove_of_100_numbers_has_4672_primary_capsules():
    assert on_paper(100).document.compression.weight.shape == (128, 4_672)


def test_without_compression_every_primary_capsule_is_routed():
    network = on_paper(300, condensed=0)
    assert network.document.compression is None
    assert network.document.count == 14_272


def test_the_chain_equals_its_equations_in_loops():
    network = tiny_network("paper", routing="kde")
    tokens = token_rows(14, 6)
    document = network.document
    with torch.no_grad():
        for b, row in enumerate(document.convolution.fit(tokens)):
            words = document.embedding.table.weight[row]  # (l, v)
            primary = []
            for layer, lift in zip(document.convolution.convolutions, document.primary, strict=True):
                width = layer.kernel_size[0]
                for f in range(layer.out_channels):
                    for start in range(0, words.shape[1] - width + 1, 2):
                        feature = (layer.weight[f] * words[:, start : start + width]).sum() + layer.bias[f]
                        lifted = torch.relu(feature) * lift.weight[f] + lift.bias[f]
                        length = lifted.norm()
                        primary.append(lifted * length / (1 + length**2))
            condensed = document.compression.weight @ torch.stack(primary)  # (m, d)
            votes = torch.stack([condensed @ W.T for W in network.transform], dim=1)  # (m, n, d)
            expected = ROUTINGS["kde"](FormedVotes(votes.unsqueeze(0)), iterations=3)
            actual = network(tokens).logits[b]
            torch.testing.assert_close(actual, log_odds(expected.activations[0]), atol=1e-4, rtol=1e-4)


def test_words_beyond_the_fixed_length_are_cut_off():
    network = tiny_network("paper")
    rows = token_rows(30)
    assert torch.equal(network(rows).logits, network(rows[:, :14]).logits)


@pytest.mark.parametrize("model", ["paper", "official"])
@pytest.mark.parametrize("routing", ["dynamic", "em", "kde", "kde-em"])
def test_a_fixed_routing_takes_as_many_iterations_as_set(model, routing):
    network = tiny_network(model, routing=routing, iterations=4)
    assert network(token_rows(5, 3)).iterations.tolist() == [4, 4]


@pytest.mark.parametrize("model", ["paper", "official"])
def test_adaptive_routing_stops_by_epsilon_and_by_the_cap(model):
    rows = token_rows(14, 9)
    assert tiny_network(model, epsilon=1e6)(rows).iterations.tolist() == [2, 2]
    never = tiny_network(model, epsilon=1e-12, max_iterations=5)
    with torch.no_grad():
        never.transform.normal_()
    assert never(rows).iterations.tolist() == [5, 5]


@pytest.mark.parametrize(
    "settings",
    [{"literal": True}, {"softmax": "standard"}, {"kappa": 0.5}, {"alpha": 3.0}, {"iterations": 1}],
)
def test_every_setting_of_the_routing_has_an_effect(settings):
    routing = "kde" if "iterations" in settings else "adaptive-kde"
    first, second = (tiny_network("paper", routing=routing, **change) for change in ({}, settings))
    for network in (first, second):
        with torch.no_grad():  # votes long enough for routing to move
            network.transform.mul_(20)
    rows = token_rows(14, 9)
    assert not torch.allclose(first(rows).logits, second(rows).logits, rtol=1e-3)


def test_the_routing_needs_its_own_costs_for_em():
    votes = FormedVotes(torch.randn(1, 4, LABELS, 8))
    with pytest.raises(ValueError, match="costs"):
        route(votes, tiny_config("paper", routing="em").model)
