"""squash, the softmaxes, primary capsules and compression."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from nlpcapsule.capsules.compression import CapsuleCompression
from nlpcapsule.capsules.primary import PrimaryCapsules
from nlpcapsule.capsules.softmax import couple, uniform_coupling
from nlpcapsule.capsules.squash import squash
from nlpcapsule.capsules.votes import PerClassVotes


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.floats(0.1, 10.0))
@settings(max_examples=60, deadline=None)
def test_squash_keeps_the_direction_and_a_length_below_one(numbers, kappa):
    x = torch.tensor(numbers, dtype=torch.float64)
    squashed = squash(x, kappa)
    assert 0.0 <= squashed.norm() < 1.0
    torch.testing.assert_close(squashed * x.norm(), x * squashed.norm())


def test_squash_has_the_papers_length_along_any_axis():
    x = torch.tensor([[3.0, 0.0], [4.0, 1.0]])
    torch.testing.assert_close(squash(x, dim=0).norm(dim=0), torch.tensor([25 / 26, 1 / 2]))
    torch.testing.assert_close(squash(x, kappa=0.5, dim=0).norm(dim=0), torch.tensor([25 / 25.5, 1 / 1.5]))


def test_squash_of_zero_is_zero_with_a_zero_gradient():
    x = torch.zeros(2, 3, requires_grad=True)
    squashed = squash(x)
    squashed.sum().backward()
    assert squashed.eq(0).all()
    assert x.grad.eq(0).all()


def test_squash_passes_gradcheck():
    torch.manual_seed(0)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: squash(x, 0.5), (x,))


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_softmaxes_equal_their_formulas(numbers):
    logits = torch.tensor(numbers, dtype=torch.float64).view(1, 1, -1)
    powers = logits.exp()
    torch.testing.assert_close(couple(logits, "standard"), powers / powers.sum())
    torch.testing.assert_close(couple(logits, "leaky"), powers / (1 + powers.sum()))


@pytest.mark.parametrize("logit", [-1e4, 1e4])
def test_leaky_softmax_is_finite_for_extreme_logits_and_its_gradient_too(logit):
    logits = torch.full((1, 1, 4), logit, requires_grad=True)
    coupling = couple(logits, "leaky")
    coupling.square().sum().backward()
    torch.testing.assert_close(coupling.sum(), torch.tensor(1.0 if logit > 0 else 0.0))
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["standard", "leaky"])
def test_padding_takes_no_part_in_a_softmax(kind):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 5, dtype=torch.float64)
    valid = torch.tensor([[True, False, True, True, False], [True] * 5])
    coupling = couple(logits, kind, valid)
    assert coupling[0][:, ~valid[0]].eq(0).all()
    torch.testing.assert_close(coupling[0][:, valid[0]], couple(logits[:1, :, valid[0]], kind)[0])
    torch.testing.assert_close(coupling[1], couple(logits[1:], kind)[0])


@pytest.mark.parametrize("kind", ["standard", "leaky"])
def test_a_document_with_nothing_but_padding_gets_no_nan(kind):
    assert couple(torch.zeros(1, 2, 3), kind, torch.zeros(1, 3, dtype=torch.bool)).isfinite().all()


def test_the_uniform_coupling_is_what_equal_logits_give():
    votes = PerClassVotes(torch.randn(2, 3, 4), torch.randn(5, 4, 4))
    valid = torch.tensor([[True, True, False, True, False], [True] * 5])
    torch.testing.assert_close(uniform_coupling(votes, "standard")[0, 0], torch.full((5,), 1 / 5))
    torch.testing.assert_close(uniform_coupling(votes, "leaky")[0, 0], torch.full((5,), 1 / 6))
    masked = uniform_coupling(votes, "leaky", valid)
    assert masked.shape == (2, 3, 5)
    torch.testing.assert_close(masked[0, 2], torch.tensor([0.25, 0.25, 0.0, 0.25, 0.0]))
    torch.testing.assert_close(
        uniform_coupling(votes, "leaky", valid, logit=0.7), couple(torch.full((2, 3, 5), 0.7), "leaky", valid)
    )


def test_primary_capsules_are_a_group_convolution_and_a_squash():
    torch.manual_seed(0)
    layer = PrimaryCapsules(filters=5, size=4, kappa=0.5)
    torch.nn.init.normal_(layer.bias)
    maps = torch.randn(2, 5, 7)
    convolved = F.conv1d(maps, layer.weight.view(20, 1, 1), layer.bias.view(20), groups=5)  # (2, 20, 7)
    expected = squash(convolved.view(2, 5, 4, 7).transpose(2, 3).reshape(2, 35, 4), 0.5)
    torch.testing.assert_close(layer(maps), expected)


def test_primary_capsules_of_different_filters_are_not_collinear():
    torch.manual_seed(0)
    capsules = PrimaryCapsules(filters=6, size=4)(torch.rand(1, 6, 3))
    assert torch.linalg.matrix_rank(capsules[0]) == 4


def test_an_absent_feature_starts_as_a_capsule_without_length():
    assert PrimaryCapsules(filters=3)(torch.zeros(2, 3, 4)).eq(0).all()


def test_compression_is_the_weighted_sum_of_primary_capsules():
    torch.manual_seed(0)
    layer = CapsuleCompression(primary=6, condensed=3)
    primary = torch.randn(2, 6, 4)
    condensed = layer(primary)
    assert condensed.shape == (2, 3, 4)
    for b in range(2):
        for i in range(3):
            plain = sum(layer.weight[i, j] * primary[b, j] for j in range(6))
            torch.testing.assert_close(condensed[b, i], plain)


@pytest.mark.parametrize("kappa", [1.0, 0.5])
def test_capsules_condensed_without_being_formed_equal_the_formed_ones(kappa):
    torch.manual_seed(0)
    maps = [torch.relu(torch.randn(2, 3, length, dtype=torch.float64)).requires_grad_() for length in (4, 2)]
    layers = [PrimaryCapsules(3, 5, kappa).double() for _ in maps]
    for layer in layers:
        torch.nn.init.normal_(layer.bias)
    compression = CapsuleCompression(3 * (4 + 2), 7).double()
    leaves = [*maps, compression.weight, *(each for layer in layers for each in layer.parameters())]
    formed = compression(torch.cat([layer(each) for layer, each in zip(layers, maps, strict=True)], dim=1))
    condensed = compression.condense(layers, maps)
    torch.testing.assert_close(condensed, formed)
    pull = torch.randn_like(formed)
    ours, theirs = (torch.autograd.grad((each * pull).sum(), leaves) for each in (condensed, formed))
    for mine, plain in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, plain)


def test_absent_features_condense_to_nothing_with_finite_gradients():
    layer, maps = PrimaryCapsules(3, 5), torch.zeros(2, 3, 4, requires_grad=True)
    condensed = CapsuleCompression(12, 7).condense([layer], [maps])
    condensed.sum().backward()
    assert not condensed.any()
    assert all(each.grad.isfinite().all() for each in (maps, layer.weight, layer.bias))


@pytest.mark.parametrize("maps", [8, 200])
def test_condensed_capsules_start_about_one_long(maps):
    torch.manual_seed(0)
    features = torch.randn(4, 16, maps).relu()
    condensed = CapsuleCompression(16 * maps, 32)(PrimaryCapsules(16)(features))
    assert 0.6 < condensed.norm(dim=-1).mean() < 1.6
