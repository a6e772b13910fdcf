"""Cap-Zhao: n-grams, primary capsules, capsules of neighbourhoods, label capsules; routed twice."""

import pytest
import torch

from class_constants import settings_of
from nlpcapsule.baselines.cap_zhao import CapZhao, CapZhaoSettings
from nlpcapsule.errors import ConfigError
from nlpcapsule.registry import NetworkInputs

VOCABULARY, LABELS, LENGTH = 20, 5, 11
SIZES = {"embedding_size": 6, "filters": 4, "channels": 2, "capsule_size": 3}


def network_of(length=LENGTH, **settings):
    torch.manual_seed(0)
    return CapZhao(
        settings_of(CapZhaoSettings, **{**SIZES, **settings}),
        NetworkInputs(VOCABULARY, length=length, label_count=LABELS),
    ).eval()


def squashed(x):
    length = x.norm()
    return x * 0 if length == 0 else length**2 / (1 + length**2) * x / length


def routed_in_loops(children, transforms, iterations):
    """Sabour's routing with a leak: exp(b_ij) / (1 + Σ_j exp(b_ij)), votes W_j u_i formed one by one."""
    votes = [[matrix @ child for matrix in transforms] for child in children]
    logits = torch.zeros(len(children), len(transforms))
    for iteration in range(iterations):
        parents = []
        for j in range(len(transforms)):
            total = sum(
                logits[i, j].exp() / (1 + logits[i].exp().sum()) * votes[i][j] for i in range(len(children))
            )
            parents.append(squashed(total))
        if iteration < iterations - 1:
            logits = logits + torch.tensor(
                [[vote @ v for vote, v in zip(row, parents, strict=True)] for row in votes]
            )
    return parents


def label_capsules_in_loops(chain, words, width, stride, neighbours, iterations):
    primary = []
    for t in range(0, len(words) - width + 1, stride):
        window = words[t : t + width].T  # (v, k)
        ngram = torch.relu((chain.ngrams.weight * window).sum(dim=(1, 2)) + chain.ngrams.bias)
        lifted = chain.primary.weight @ ngram + chain.primary.bias
        primary.append([squashed(capsule) for capsule in lifted.view(SIZES["channels"], -1)])
    middle = []
    for place in range(len(primary) - neighbours + 1):
        children = [capsule for position in primary[place : place + neighbours] for capsule in position]
        middle += routed_in_loops(children, chain.neighbourhood, iterations)
    return torch.stack(routed_in_loops(middle, chain.transform, iterations))


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.parametrize(("stride", "neighbours", "iterations"), [(2, 3, 3), (1, 2, 1)])
def test_the_chain_equals_its_equations(variant, stride, neighbours, iterations):
    network = network_of(variant=variant, stride=stride, neighbours=neighbours, iterations=iterations)
    row = torch.randint(1, VOCABULARY, (LENGTH - 2,))
    with torch.no_grad():
        network.embedding.table.weight.mul_(8)  # or couplings would hardly move
        words = torch.zeros(LENGTH, 6)
        words[: len(row)] = network.embedding.table.weight[row]
        capsules = [
            label_capsules_in_loops(chain, words, width, stride, neighbours, iterations)
            for width, chain in zip((3, 4, 5), network.chains, strict=False)
        ]
        expected = torch.stack(capsules).mean(dim=0).norm(dim=-1)
        activations = torch.sigmoid(network(row.unsqueeze(0)).logits[0])
    torch.testing.assert_close(activations, expected, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("variant", "widths"), [("A", [3]), ("B", [3, 4, 5])])
def test_variants_differ_in_their_ngrams(variant, widths):
    assert [chain.ngrams.kernel_size[0] for chain in network_of(variant=variant).chains] == widths


def test_all_documents_take_all_iterations():
    scored = network_of(iterations=4)(torch.randint(1, VOCABULARY, (3, LENGTH)))
    assert scored.iterations.tolist() == [4, 4, 4]
    assert scored.agreement.shape == (3, 4)


def test_what_lies_beyond_the_length_is_not_read():
    network = network_of()
    row = torch.randint(1, VOCABULARY, (1, LENGTH + 3))
    assert torch.equal(network(row).logits, network(row[:, :LENGTH]).logits)


def test_a_length_too_short_for_its_layers_is_refused():
    network_of(length=9)  # 5-grams at 0, 2 and 4
    with pytest.raises(ConfigError, match=r"text\.max_tokens=8 is too short.* expected 9 or more"):
        network_of(length=8)


def test_votes_are_never_formed():
    """Nothing kept for the gradient has m·n·d numbers; couplings have m·n."""
    settings, labels = CapZhaoSettings(variant="A", **{**SIZES, "capsule_size": 16}), 300
    network = CapZhao(settings, NetworkInputs(VOCABULARY, length=40, label_count=labels))
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(torch.randint(1, VOCABULARY, (2, 40)))
    inputs = 17 * 2  # 19 n-grams, so 17 places, two capsules each
    assert max(kept) <= 2 * inputs * (labels + 1) + labels * 16 * 16
    assert max(kept) < 2 * inputs * labels * 16 / 3
