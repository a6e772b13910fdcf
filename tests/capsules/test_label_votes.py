"""Votes of `label-query` against votes that are formed one by one."""

import pytest
import torch
from tensor_sizes import RecordSizes
from torch import nn

from nlpcapsule.capsules.label_votes import FactoredTransform, GatedTransform, SlotTransform
from nlpcapsule.capsules.routing import route_labels

B, M, N, D, R = 3, 5, 4, 6, 2
KINDS = ["factored", "gated"]
AGREEMENTS = ["dot", "kde", "adaptive-kde"]


def transform_of(kind, dtype=torch.float64, condensed=M, labels=N, size=D):
    torch.manual_seed(2)
    transform = (
        FactoredTransform(condensed, labels, size, R)
        if kind == "factored"
        else GatedTransform(condensed, labels, size)
    )
    with torch.no_grad():
        transform.label.normal_()  # far from where it starts, so that every term counts
    return transform.to(dtype)


def inputs(documents=B, condensed=M, labels=N, size=D, dtype=torch.float64):
    torch.manual_seed(3)
    u = nn.functional.layer_norm(torch.randn(documents, condensed, size, dtype=dtype), (size,))
    return u.requires_grad_(), torch.randn(documents, labels, condensed, dtype=dtype, requires_grad=True)


def formed_vote(kind, transform, label, u, i):
    """û_{j|i} (d,) of one document's capsule u (d,), one sum at a time; `label` is c_j."""
    if kind == "gated":
        return u + label * transform.slot[i] * (transform.features.weight @ u)
    return u + sum(transform.slot[i, r] * label[r] * (transform.weight[r] @ u) for r in range(R))


def formed_votes(kind, transform, labels, u):
    """(B, m, n, d); labels are rows of c, (n, ·) or (B, n, ·)."""
    rows = labels.expand(len(u), *labels.shape[-2:])
    documents = []
    for b in range(len(u)):
        documents.append(
            torch.stack(
                [
                    torch.stack([formed_vote(kind, transform, row, u[b, i], i) for row in rows[b]])
                    for i in range(u.shape[1])
                ]
            )
        )
    return torch.stack(documents)


def route_formed(votes, logits, agreement, gate, iterations, project, reach=1.0, eps=0.05):
    """One document's routing from its votes (m, n, d) and logits (n, m): v (n, d), iterations."""
    last, used = float("inf"), 0
    for _ in range(iterations):
        used += 1
        coupling = logits.softmax(dim=-1)  # (n, m)
        v = sum(coupling[:, i, None] * votes[i] for i in range(len(votes)))  # (n, d)
        if agreement == "dot":
            agreed = (project(v) * votes).sum(dim=-1).T / votes.shape[-1] ** 0.5  # (n, m)
            logits = logits + gate * agreed
            continue
        kernel = (1.0 - (votes - v).square().sum(dim=-1).T / (reach * votes.shape[-1])).clamp(min=0)
        logits = logits + 10.0 * gate * kernel
        score = (coupling * kernel).sum(dim=-1).mean().log().item()
        if agreement == "adaptive-kde" and abs(score - last) < eps:
            break
        last = score
    return v, used


@pytest.mark.parametrize("own", [False, True], ids=["shared labels", "labels per document"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_and_products_equal_those_of_formed_votes(kind, own):
    transform, (u, coupling) = transform_of(kind), inputs()
    labels = transform.label[torch.tensor([[0, 3], [2, 1], [3, 3]])] if own else transform.label
    coupling = coupling[:, : labels.shape[-2]]
    votes, formed = transform(u, labels), formed_votes(kind, transform, labels, u)  # (B, m, n, d)
    v = torch.randn(B, labels.shape[-2], D, dtype=torch.float64)
    torch.testing.assert_close(votes.weighted_sum(coupling), torch.einsum("bnm,bmnd->bnd", coupling, formed))
    torch.testing.assert_close(votes.inner(v), torch.einsum("bmnd,bnd->bnm", formed, v))
    torch.testing.assert_close(votes.squared_norm(), formed.square().sum(dim=-1).transpose(1, 2))
    some = torch.tensor([2, 0])
    torch.testing.assert_close(votes.select(some).inner(v[some]), votes.inner(v)[some])
    compared = (formed - formed.mean(dim=1, keepdim=True)) * 0.7
    torch.testing.assert_close(
        votes.as_compared(0.7).squared_norm(), compared.square().sum(dim=-1).transpose(1, 2)
    )


@pytest.mark.parametrize("iterations", [1, 3, 6])
@pytest.mark.parametrize("agreement", AGREEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_routing_equals_that_of_formed_votes(kind, agreement, iterations):
    transform, (u, logits) = transform_of(kind), inputs()
    project = nn.Sequential(nn.Linear(D, D, bias=False), nn.LayerNorm(D)).double()
    gate, reach = torch.tensor(0.3, dtype=torch.float64, requires_grad=True), 9.0
    votes = transform(u, transform.label)
    routed = route_labels(
        votes,
        logits,
        agreement=agreement,
        gate=gate,
        iterations=iterations,
        max_iterations=iterations,
        compared=None if agreement == "dot" else votes.as_compared(reach**-0.5),
        project=project,
    )
    formed = formed_votes(kind, transform, transform.label, u)
    documents = [
        route_formed(formed[b], logits[b], agreement, gate, iterations, project, reach) for b in range(B)
    ]
    expected = torch.stack([v for v, _ in documents])
    torch.testing.assert_close(routed.label_capsules, expected)
    assert routed.iterations.tolist() == [used for _, used in documents]
    leaves = [u, logits, *transform.parameters()] + ([gate] if iterations > 1 else [])
    pull = torch.randn_like(expected)
    ours = torch.autograd.grad((routed.label_capsules * pull).sum(), leaves)
    theirs = torch.autograd.grad((expected * pull).sum(), leaves)
    for mine, plain in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("own", [False, True], ids=["shared labels", "labels per document"])
@pytest.mark.parametrize("kind", KINDS)
def test_documents_that_stop_apart_keep_their_own_votes(kind, own):
    documents, reach = 12, 9.0 if kind == "factored" else 2.0
    transform, (u, logits) = transform_of(kind), inputs(documents)
    sharpness = torch.linspace(0.1, 4.0, documents, dtype=torch.float64)[:, None, None]
    labels = transform.label[torch.randint(N, (documents, N))] if own else transform.label
    votes, first = transform(u, labels), logits * sharpness
    compared = votes.as_compared(reach**-0.5)
    routed = route_labels(votes, first, agreement="adaptive-kde", gate=0.3, compared=compared)
    assert len(routed.iterations.unique()) >= 3
    formed = formed_votes(kind, transform, labels, u)
    for b in range(documents):
        v, used = route_formed(formed[b], first[b], "adaptive-kde", 0.3, 10, None, reach)
        assert routed.iterations[b] == used
        torch.testing.assert_close(routed.label_capsules[b], v)


@pytest.mark.parametrize("kind", KINDS)
def test_votes_of_a_label_without_a_gate_route_as_the_capsules_do(kind):
    transform, (u, logits) = transform_of(kind), inputs()
    with torch.no_grad():
        transform.label.zero_()
    votes = transform(u, transform.label)
    for compared in (None, votes.as_compared()):
        routed = route_labels(votes, logits, agreement="kde", compared=compared)
        plain = route_labels(u, logits, agreement="kde")
        torch.testing.assert_close(routed.label_capsules, plain.label_capsules)
        torch.testing.assert_close(routed.agreement, plain.agreement, equal_nan=True)


@pytest.mark.parametrize("agreement", AGREEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_tensor_has_a_number_per_document_capsule_label_and_dimension(kind, agreement):
    documents, condensed, labels, size = 3, 24, 10, 6
    u, logits = inputs(documents, condensed, labels, size)
    transform = transform_of(kind, condensed=condensed, labels=labels, size=size)
    project = nn.Sequential(nn.Linear(size, size, bias=False), nn.LayerNorm(size)).double()
    with RecordSizes() as sizes:
        votes = transform(u, transform.label)
        route_labels(votes, logits, agreement=agreement, project=project).label_capsules.sum().backward()
    assert max(sizes) < documents * condensed * labels * size


def test_a_slots_matrix_moves_its_own_capsule():
    transform, (u, _) = SlotTransform(M, D).double(), inputs()
    torch.testing.assert_close(transform(u), u)  # it starts at zero
    with torch.no_grad():
        transform.weight.normal_()
    moved = transform(u)
    for b in range(B):
        for i in range(M):
            torch.testing.assert_close(moved[b, i], u[b, i] + transform.weight[i] @ u[b, i])
