"""The paper's chain: its sizes, and its equations in loops."""

import functools

import pytest
import routing_reference as reference
import torch
from tiny_networks import LABELS, tiny_network, token_rows

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.capsules.votes import PerClassVotes
from nlpcapsule.errors import ConfigError
from nlpcapsule.networks.paper import PaperNetwork, PaperSettings, form_votes
from nlpcapsule.networks.scored import log_odds
from nlpcapsule.registry import NetworkInputs


def on_paper(embedding_size, **settings):
    """A network of full size whose weights take no memory."""
    with torch.device("meta"):
        return PaperNetwork(
            PaperSettings(embedding_size=embedding_size, **settings), NetworkInputs(100, label_count=3956)
        )


def weights_of(transform):
    """W as one tensor: (n, m·d·d) of pairs, (n, d, d) of classes."""
    return transform.rows if isinstance(transform, PairTransforms) else transform


def votes_long_enough_to_be_routed(network):
    """Draws W anew: pairs start so near zero that no routing moves."""
    with torch.no_grad():
        weights_of(network.transform).normal_(std=7.0, generator=torch.Generator().manual_seed(1))
    return network


@pytest.mark.parametrize(("votes", "transform"), [("pair", 3956 * 128 * 16 * 16), ("class", 3956 * 16 * 16)])
def test_eurlex_has_the_sizes_of_the_paper(votes, transform):
    network = on_paper(300, votes=votes)
    assert network.document.convolution.map_sizes == [150, 149, 147]
    assert network.document.compression.weight.shape == (128, 14_272)
    assert network.document.count == 128
    parts = {
        "convolution": 32 * 500 * (2 + 4 + 8) + 3 * 32,
        "primary": 3 * 32 * (16 + 16),
        "compression": 14_272 * 128,
        "transform": transform,
        "embedding": 100 * 300,
    }
    for part, expected in parts.items():
        counts = [p.numel() for name, p in network.named_parameters() if part in name.split(".")[:2]]
        assert sum(counts) == expected, part
    assert sum(p.numel() for p in network.parameters()) == sum(parts.values())


def test_glove_of_100_numbers_has_4672_primary_capsules():
    assert on_paper(100).document.compression.weight.shape == (128, 4_672)


def test_without_compression_every_primary_capsule_is_routed():
    network = on_paper(300, condensed=0, votes="class")
    assert network.document.compression is None
    assert network.document.count == 14_272


def test_a_matrix_per_pair_of_all_primary_capsules_is_refused_before_it_is_made():
    with pytest.raises(ConfigError, match=r"14,272 capsules and 3,956 labels takes 54 GiB.*votes=class"):
        on_paper(300, condensed=0)


# Every routing of `paper` beside its loops, which know nothing of the package.
ROUTED_IN_LOOPS = {
    "dynamic": ({}, functools.partial(reference.dynamic, kind="leaky")),
    "em": ({}, None),  # its costs are the network's own
    "kde": ({}, reference.kde_mean_shift),
    "kde-em": ({}, functools.partial(reference.kde_em, kind="leaky")),
    "adaptive-kde": ({"epsilon": 1e-3}, functools.partial(reference.adaptive_kde, eps=1e-3)),
    "adaptive-kde-literal": ({"epsilon": 1e-3}, functools.partial(reference.literal_kde, eps=1e-3)),
}


def loops_of(network, routing):
    """One document's votes (m, n, d) → what the routing gives."""
    if routing != "em":
        return ROUTED_IN_LOOPS[routing][1]
    share = LABELS / network.document.count  # λ = n / m
    beta_u, beta_a = network.em_costs.tolist()
    return functools.partial(reference.em, beta_u=beta_u, beta_a=beta_a / share, inverse_temperature=share)


def condensed_in_loops(document, row):
    """Condensed capsules (m, d) of one row of tokens, from the equations."""
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
    return document.compression.weight @ torch.stack(primary)


def votes_in_loops(network, condensed):
    """û_{j|i} (m, n, d) of one document: W_ij u_i, or W_j u_i."""
    size = network.settings.capsule_size
    votes = torch.empty(len(condensed), LABELS, size, dtype=condensed.dtype)
    for i, capsule in enumerate(condensed):
        for j in range(LABELS):
            if network.settings.votes == "pair":
                row = network.transform.rows[j]  # capsule after capsule, each of its matrices row by row
                matrix = row[i * size * size : (i + 1) * size * size].view(size, size)
            else:
                matrix = network.transform[j]
            votes[i, j] = matrix @ capsule
    return votes


@pytest.mark.parametrize("votes", ["pair", "class"])
@pytest.mark.parametrize("routing", ROUTED_IN_LOOPS)
def test_the_chain_equals_its_equations_in_loops(routing, votes):
    settings = {"routing": routing, "votes": votes}
    network = tiny_network("paper", **settings, **ROUTED_IN_LOOPS[routing][0]).double()
    votes_long_enough_to_be_routed(network)
    loops = loops_of(network, routing)
    tokens = token_rows(14, 6)
    with torch.no_grad():
        scored = network(tokens)
        for b, row in enumerate(network.document.convolution.fit(tokens)):
            expected = loops(votes_in_loops(network, condensed_in_loops(network.document, row)))
            torch.testing.assert_close(scored.logits[b], log_odds(expected.activations))
            assert scored.iterations[b] == len(expected.scores)
            # Or the routing would say nothing: its couplings have moved from where they started.
            assert expected.coupling.std(dim=1).max() > 1e-3


@pytest.mark.parametrize("votes", ["pair", "class"])
def test_outputs_asked_for_have_the_votes_they_have_among_all(votes):
    network = tiny_network("paper", votes=votes)
    capsules = torch.randn(2, 4, 8)
    ids, own = torch.tensor([7, 2, 5]), torch.tensor([[7, 2, 5], [1, 8, 0]])
    of_all, of_batch, of_each = (
        form_votes(capsules, network.transform, outputs).total() for outputs in (None, ids, own)
    )
    torch.testing.assert_close(of_batch, of_all[:, ids])
    torch.testing.assert_close(of_each, torch.stack([of_all[row, own[row]] for row in range(2)]))


def test_one_matrix_per_label_never_forms_the_votes():
    """(B, m, n, d) would be gigabytes; pairs form the votes of the outputs asked for."""
    per_class = form_votes(torch.randn(2, 4, 8), tiny_network("paper", votes="class").transform)
    assert isinstance(per_class, PerClassVotes)


def test_a_label_starts_as_absent_on_pairs():
    network = tiny_network("paper")
    assert network.transform.rows.std().item() == pytest.approx(1e-4, rel=0.1)
    assert network(token_rows(14, 9)).logits.sigmoid().max() < 0.01


def test_words_beyond_the_fixed_length_are_cut_off():
    network = tiny_network("paper")
    rows = token_rows(30)
    assert torch.equal(network(rows).logits, network(rows[:, :14]).logits)


@pytest.mark.parametrize("routing", ["dynamic", "em", "kde", "kde-em"])
def test_a_fixed_routing_takes_as_many_iterations_as_set(routing):
    network = tiny_network("paper", routing=routing, iterations=4)
    assert network(token_rows(5, 3)).iterations.tolist() == [4, 4]


@pytest.mark.parametrize("model", ["paper", "official"])
def test_adaptive_routing_stops_by_epsilon_and_by_the_cap(model):
    rows = token_rows(14, 9)
    assert tiny_network(model, epsilon=1e6)(rows).iterations.tolist() == [2, 2]
    never = votes_long_enough_to_be_routed(tiny_network(model, epsilon=1e-12, iterations=5))
    assert never(rows).iterations.tolist() == [5, 5]


@pytest.mark.parametrize("votes", ["pair", "class"])
@pytest.mark.parametrize(
    "settings",
    [
        {"routing": "adaptive-kde-literal"},
        {"softmax": "standard"},
        {"kappa": 0.5},
        {"alpha": 3.0},
        {"iterations": 1},
    ],
)
def test_every_setting_of_the_routing_has_an_effect(settings, votes):
    routing = "kde" if "iterations" in settings else "adaptive-kde"
    first, second = (
        votes_long_enough_to_be_routed(tiny_network("paper", votes=votes, **{"routing": routing, **change}))
        for change in ({}, settings)
    )
    rows = token_rows(14, 9)
    assert not torch.allclose(first(rows).logits, second(rows).logits, rtol=1e-3)
