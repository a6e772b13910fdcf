"""Votes through their sums and products, against the votes formed plainly."""

import pytest
import torch

from nlpcapsule.capsules.votes import PairwiseVotes, PerClassVotes

B, M, N, D = 3, 5, 4, 6
KINDS = {
    "shared": "nhk",
    "per document": "bnhk",
    "pairwise": "nmhk",
    "pairwise per document": "bnmhk",
}


@pytest.fixture(params=KINDS)
def both(request):
    torch.manual_seed(0)
    sizes = {"b": B, "m": M, "n": N, "h": D, "k": D}
    u = torch.randn(B, M, D, dtype=torch.float64)
    w = torch.randn([sizes[axis] for axis in KINDS[request.param]], dtype=torch.float64)
    votes = PairwiseVotes(u, w) if "pairwise" in request.param else PerClassVotes(u, w)
    return votes, torch.einsum(f"{KINDS[request.param]},bmk->bmnh", w, u)


def assert_same_votes(votes, formed):
    documents = formed.shape[0]
    weights = torch.rand(documents, M, N, dtype=torch.float64)
    capsules = torch.randn(documents, N, D, dtype=torch.float64)
    scale = torch.rand(documents, N, D, dtype=torch.float64)
    assert votes.shape == (documents, M, N, D)
    torch.testing.assert_close(votes.total(), formed.sum(1))
    torch.testing.assert_close(votes.weighted_sum(weights), (weights[..., None] * formed).sum(1))
    torch.testing.assert_close(votes.inner(capsules), (formed * capsules[:, None]).sum(-1))
    torch.testing.assert_close(votes.squared_norm(), formed.square().sum(-1))
    torch.testing.assert_close(votes.squared_norm(scale), (formed.square() * scale[:, None]).sum(-1))
    torch.testing.assert_close(votes.second_moment(weights), (weights[..., None] * formed.square()).sum(1))


def test_sums_and_products_equal_those_of_the_formed_votes(both):
    assert_same_votes(*both)


def test_select_keeps_the_votes_of_the_documents_named_in_their_order(both):
    votes, formed = both
    votes.squared_norm()  # a norm cached before must not survive the selection
    documents = torch.tensor([2, 0])
    assert_same_votes(votes.select(documents), formed[documents])


def test_the_squared_norm_is_computed_once(both):
    votes, _ = both
    assert votes.squared_norm() is votes.squared_norm()


def test_half_precision_inputs_are_raised_to_float32():
    votes = PerClassVotes(torch.randn(2, 3, 4).bfloat16(), torch.randn(5, 4, 4).bfloat16())
    assert votes.dtype == votes.squared_norm().dtype == torch.float32


def test_the_squared_norm_in_float32_is_exact_to_rounding_and_never_negative():
    torch.manual_seed(0)
    u, w = torch.randn(4, 32, 16, dtype=torch.float64), torch.randn(50, 16, 16, dtype=torch.float64)
    w[0] = 0.0
    exact = PerClassVotes(u, w).squared_norm()
    single = PerClassVotes(u.float(), w.float()).squared_norm()
    assert single.min() >= 0.0
    torch.testing.assert_close(single.double(), exact, rtol=1e-5, atol=1e-5)
