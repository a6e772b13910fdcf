"""Every routing, forward and backward, against the loops of `routing_reference`."""

import functools

import pytest
import routing_reference as reference
import torch

from nlpcapsule.capsules.routing import ROUTINGS, adaptive_kde
from nlpcapsule.capsules.votes import PairwiseVotes, PerClassVotes

B, M, N, D = 3, 4, 3, 3

# Every routing with the options of its own, beside its loop-written twin.
CASES = {
    "dynamic": (ROUTINGS["dynamic"], reference.dynamic),
    "dynamic, leaky, κ=0.5": (
        functools.partial(ROUTINGS["dynamic"], softmax="leaky", kappa=0.5, iterations=2),
        functools.partial(reference.dynamic, kind="leaky", kappa=0.5, iterations=2),
    ),
    "em": (ROUTINGS["em"], reference.em),
    "em, its own β and λ": (
        functools.partial(ROUTINGS["em"], beta_u=0.3, beta_a=-0.2, inverse_temperature=0.7),
        functools.partial(reference.em, beta_u=0.3, beta_a=-0.2, inverse_temperature=0.7),
    ),
    "em, leaky, high floor": (
        functools.partial(ROUTINGS["em"], softmax="leaky", variance_floor=0.3),
        functools.partial(reference.em, kind="leaky", floor=0.3),
    ),
    "kde": (ROUTINGS["kde"], reference.kde_mean_shift),
    "kde, standard, α=2, T=4": (
        functools.partial(ROUTINGS["kde"], softmax="standard", alpha=2.0, iterations=4),
        functools.partial(reference.kde_mean_shift, kind="standard", alpha=2.0, iterations=4),
    ),
    "kde, one iteration": (
        functools.partial(ROUTINGS["kde"], iterations=1),
        functools.partial(reference.kde_mean_shift, iterations=1),
    ),
    "kde-em": (ROUTINGS["kde-em"], reference.kde_em),
    "kde-em, leaky": (
        functools.partial(ROUTINGS["kde-em"], softmax="leaky", kappa=0.5),
        functools.partial(reference.kde_em, kind="leaky", kappa=0.5),
    ),
    "adaptive-kde": (ROUTINGS["adaptive-kde"], reference.adaptive_kde),
    "adaptive-kde, small ε": (
        functools.partial(adaptive_kde, eps=1e-3, kappa=0.5, max_iterations=6),
        functools.partial(reference.adaptive_kde, eps=1e-3, kappa=0.5, iterations=6),
    ),
    "adaptive-kde, unclamped": (
        functools.partial(adaptive_kde, eps=1e-3, clamp_kernel=False, max_iterations=4),
        functools.partial(reference.adaptive_kde, eps=1e-3, clamp=False, iterations=4),
    ),
    "adaptive-kde, literal": (
        functools.partial(adaptive_kde, literal=True, eps=1e-3),
        functools.partial(reference.literal_kde, eps=1e-3),
    ),
}


def make_votes(kind, scale=1.0):
    """Votes, their leaves, and the same votes formed plainly (B, m, n, d)."""
    torch.manual_seed(7)
    u = torch.randn(B, M, D, dtype=torch.float64)
    # Documents of different strength, so that they differ in how long they take.
    u = (u * torch.tensor([0.5, 1.0, 3.0], dtype=u.dtype)[:, None, None]).requires_grad_()
    shape = {"shared": (N, D, D), "per document": (B, N, D, D), "pairwise": (N, M, D, D)}[kind]
    w = (scale * torch.randn(shape, dtype=torch.float64)).requires_grad_()
    index = {"shared": "nhk", "per document": "bnhk", "pairwise": "nmhk"}[kind]
    formed = torch.einsum(f"{index},bmk->bmnh", w, u)
    votes = PairwiseVotes(u, w) if kind == "pairwise" else PerClassVotes(u, w)
    return votes, (u, w), formed


def gradients(capsules, activations, leaves):
    torch.manual_seed(1)
    pull, push = (torch.randn(outcome.shape, dtype=torch.float64) for outcome in (capsules, activations))
    loss = (capsules * pull).sum() + (activations * push).sum()
    return torch.autograd.grad(loss, leaves)


@pytest.mark.parametrize("kind", ["shared", "per document", "pairwise"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_equal_the_loops(name, kind):
    routing, loops = CASES[name]
    votes, leaves, formed = make_votes(kind)
    routed = routing(votes)
    documents = [loops(document) for document in formed]

    expected = torch.stack([document.capsules for document in documents])
    activations = torch.stack([document.activations for document in documents])
    torch.testing.assert_close(routed.capsules, expected)
    torch.testing.assert_close(routed.activations, activations)
    torch.testing.assert_close(routed.coupling, torch.stack([document.coupling for document in documents]))
    assert routed.iterations.tolist() == [len(document.scores) for document in documents]
    for row, document in zip(routed.agreement, documents, strict=True):
        used = len(document.scores)
        torch.testing.assert_close(row[:used], torch.tensor(document.scores, dtype=torch.float64))
        assert row[used:].isnan().all()
    assert not routed.agreement.requires_grad
    assert not routed.coupling.requires_grad

    ours = gradients(routed.capsules, routed.activations, leaves)
    theirs = gradients(expected, activations, leaves)
    for mine, plain in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, plain)


def test_the_cases_include_documents_that_stop_at_different_iterations():
    votes, _, _ = make_votes("shared")
    assert len(set(adaptive_kde(votes).iterations.tolist())) > 1


def test_the_cases_include_votes_outside_the_kernels_support():
    _, _, formed = make_votes("shared")
    strongest = formed[2].detach()  # (m, n, d)
    capsules = reference.kde_mean_shift(strongest).capsules  # (n, d)
    votes = torch.stack([reference.squash(vote) for vote in strongest.flatten(0, 1)]).view(M, N, D)
    distances = (votes - capsules).square().sum(dim=-1)
    assert (distances > 1).any()
    assert (distances < 1).any()


@pytest.mark.parametrize("name", ["dynamic", "em", "kde", "kde-em", "adaptive-kde"])
@pytest.mark.parametrize("kind", ["shared", "per document"])
def test_gradcheck(name, kind):
    # Iterations are few and ε is zero: gradcheck's small steps must not change when a document stops.
    options = {"max_iterations": 3, "eps": 0.0} if name == "adaptive-kde" else {"iterations": 3}
    _, (u, w), _ = make_votes(kind, scale=0.3)

    def route(u, w):
        routed = ROUTINGS[name](PerClassVotes(u, w), **options)
        return routed.capsules, routed.activations

    assert torch.autograd.gradcheck(route, (u, w), atol=1e-5)
