"""What the released code does, where it differs from the paper."""

import pytest
import torch
from tiny_networks import tiny_network, token_rows

from nlpcapsule.baselines.official import OfficialNetwork, OfficialSettings
from nlpcapsule.capsules.routing.adaptive_kde import adaptive_kde
from nlpcapsule.capsules.votes import FormedVotes, PairwiseVotes
from nlpcapsule.registry import NetworkInputs


def primary_capsules(network, tokens):
    """What goes into the compression (B, P, d)."""
    seen = []
    handle = network.compression.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        network(tokens)
    handle.remove()
    return seen[0]


def test_eurlex_has_one_transform_per_pair():
    with torch.device("meta"):
        network = OfficialNetwork(OfficialSettings(embedding_size=300), NetworkInputs(100, label_count=3956))
    assert network.transform.rows.numel() == 128 * 3956 * 16 * 16 == 129_630_208
    assert network.compression.weight.shape == (128, 14_272)
    assert [layer.weight.shape for layer in network.primary] == [(512, 32, 1)] * 3


def test_a_capsule_is_neighbouring_positions_of_a_channel():
    network = tiny_network("official")
    tokens, size = token_rows(14, 6), network.settings.capsule_size
    actual = primary_capsules(network, tokens)
    with torch.no_grad():
        maps = network.convolution(network.embedding(network.convolution.fit(tokens))[0])
        first = 0
        for layer, feature in zip(network.primary, maps, strict=True):
            channels = layer(feature)  # (B, filters·d, positions), no ReLU before it
            positions = channels.shape[2]
            count = channels.shape[1] * positions // size
            for document in range(2):
                for capsule in range(count):
                    flat = [capsule * size + entry for entry in range(size)]
                    raw = torch.stack([channels[document, i // positions, i % positions] for i in flat])
                    squashed = raw * raw.norm() / (0.5 + raw.norm() ** 2)  # κ = 0.5
                    torch.testing.assert_close(actual[document, first + capsule], squashed)
            first += count
    assert first == actual.shape[1]


def test_features_below_zero_are_kept():
    network = tiny_network("official")
    tokens = token_rows(14)
    with torch.no_grad():
        before = primary_capsules(network, tokens)
        lowered = min(map_.min() for map_ in network.convolution(network.embedding(tokens)[0]))
        assert lowered < 0
        for layer in network.convolution.convolutions:
            layer.bias.sub_(100)  # a ReLU would now see nothing but zeros
    assert not torch.allclose(primary_capsules(network, tokens), before)
    assert primary_capsules(network, tokens).std(dim=1).min() > 0


def test_transforms_start_very_small():
    assert tiny_network("official").transform.rows.std().item() == pytest.approx(1e-4, rel=0.1)


def test_votes_are_gathered_alike_for_all_kinds_of_outputs():
    network = tiny_network("official")
    condensed = torch.randn(2, 4, 8)
    matrices = network.transform.rows.view(9, 4, 8, 8)  # (n, m, d, d)
    every = PairwiseVotes(condensed, matrices).votes  # (B, m, n, d)
    shared, own = torch.tensor([3, 1]), torch.tensor([[3, 1], [0, 8]])
    torch.testing.assert_close(network.transform(condensed, None).votes, every)
    torch.testing.assert_close(network.transform(condensed, shared).votes, every[:, :, shared])
    expected = torch.stack([every[0][:, own[0]], every[1][:, own[1]]])
    torch.testing.assert_close(network.transform(condensed, own).votes, expected)


def test_all_transforms_have_a_gradient_as_in_the_released_code():
    network = tiny_network("official").train()
    network(token_rows(14, 9), torch.tensor([3, 1])).logits.sum().backward()
    assert not network.transform.rows.grad.is_sparse


def test_training_stops_on_the_batch_and_inference_on_each_document():
    network = tiny_network("official", epsilon=0.01)
    torch.manual_seed(0)
    with torch.no_grad():
        network.transform.rows.normal_()
    rows = token_rows(14, 14, 9, 9, 4, 2, 1, 1)
    network.train()
    assert len(set(network(rows).iterations.tolist())) == 1
    network.eval()
    assert len(set(network(rows).iterations.tolist())) > 1


def test_it_routes_as_the_released_code_does():
    network = tiny_network("official", epsilon=1e-12, iterations=4)
    votes = FormedVotes(2 * torch.randn(2, 6, 5, 8, generator=torch.Generator().manual_seed(0)))
    options = {"eps": 1e-12, "max_iterations": 4, "kappa": 0.5, "softmax": "standard"}
    released = adaptive_kde(votes, clamp_kernel=False, **options).activations
    torch.testing.assert_close(network.route(votes).activations, released)
    assert not torch.allclose(adaptive_kde(votes, clamp_kernel=True, **options).activations, released)


def test_it_learns_from_its_small_start():
    network = tiny_network("official").train()
    rows = token_rows(14, 14, 14, 14)
    targets = torch.eye(9)[:4]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        logits = network(rows).logits
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert network(rows).logits.argmax(dim=1).tolist() == [0, 1, 2, 3]
