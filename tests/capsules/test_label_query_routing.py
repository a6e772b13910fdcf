"""The label-query routing against its loops, and what it promises."""

import pytest
import routing_reference as reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_sizes import RecordSizes
from torch import nn

from nlpcapsule.capsules.routing.label_query import route_labels
from nlpcapsule.capsules.vote_scale import VoteScale

AGREEMENTS = ["dot", "kde", "adaptive-kde"]


def inputs(documents=3, capsules=5, labels=4, size=6, seed=3, sharpness=1.5, dtype=torch.float64):
    torch.manual_seed(seed)
    u = nn.functional.layer_norm(torch.randn(documents, capsules, size, dtype=dtype), (size,))
    # Labels of some documents know at once where to look, those of others hardly at all.
    logits = torch.randn(documents, labels, capsules, dtype=dtype)
    logits = logits * torch.linspace(0.1, sharpness, documents, dtype=dtype)[:, None, None]
    return u.requires_grad_(), logits.requires_grad_()


def projection(size=6, dtype=torch.float64):
    return nn.Sequential(nn.Linear(size, size, bias=False), nn.LayerNorm(size)).to(dtype)


@pytest.mark.parametrize(
    ("agreement", "reach"), [("dot", 1.0), ("kde", 1.0), ("adaptive-kde", 1.0), ("adaptive-kde", 0.6)]
)
@pytest.mark.parametrize("iterations", [1, 3, 6])
def test_values_and_gradients_equal_the_loops(agreement, reach, iterations):
    u, logits = inputs()
    gate = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    project = projection()
    routed = route_labels(
        u,
        logits,
        agreement=agreement,
        gate=gate,
        iterations=iterations,
        compared=None if reach == 1.0 else (u - u.mean(dim=1, keepdim=True)) / reach**0.5,
        project=project,
        keep_coupling=True,
    )
    documents = [
        reference.route_labels(u[b], logits[b], agreement, gate, iterations, project, reach=reach)
        for b in range(len(u))
    ]
    expected = torch.stack([labels for labels, _, _ in documents])
    torch.testing.assert_close(routed.label_capsules, expected)
    torch.testing.assert_close(routed.coupling, torch.stack([c for _, _, c in documents]).detach())
    assert not routed.coupling.requires_grad
    assert routed.iterations.tolist() == [len(scores) for _, scores, _ in documents]
    for row, (_, scores, _) in zip(routed.agreement, documents, strict=True):
        known = scores[: iterations - 1]  # the last possible iteration is not scored
        torch.testing.assert_close(
            row[: len(known)], torch.tensor(known, dtype=torch.float64), check_dtype=False
        )
        assert row[len(known) :].isnan().all()

    leaves = [u, logits] + ([gate] if iterations > 1 else [])
    torch.manual_seed(1)
    pull = torch.randn(expected.shape, dtype=torch.float64)
    ours = torch.autograd.grad((routed.label_capsules * pull).sum(), leaves)
    theirs = torch.autograd.grad((expected * pull).sum(), leaves)
    for mine, plain in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("agreement", ["dot", "kde"])
def test_gradcheck(agreement):
    u, logits = inputs(documents=2, capsules=3, labels=2, size=4)
    project = projection(4)
    gate = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)

    def route(u, logits, gate):
        return route_labels(u, logits, agreement=agreement, gate=gate, project=project).label_capsules

    assert torch.autograd.gradcheck(route, (u, logits, gate))


def test_documents_stop_at_different_iterations():
    u, logits = inputs(documents=12, capsules=16, labels=5, size=8, sharpness=4.0)
    routed = route_labels(u, logits, agreement="adaptive-kde", iterations=10, gate=0.3)
    assert routed.iterations.min() >= 2
    assert len(routed.iterations.unique()) >= 3


@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(0.05, 0.6), st.sampled_from([0.3, 1.0, 3.0]))
@settings(max_examples=20, deadline=None)
def test_a_documents_result_alone_equals_its_result_in_a_batch(seed, documents, gate, bandwidth):
    u, logits = inputs(documents, capsules=8, seed=seed, sharpness=4.0)
    options = {"agreement": "adaptive-kde", "iterations": 10, "gate": gate}
    scale = VoteScale(bandwidth).eval()
    together = route_labels(u, logits, compared=scale(u), **options)
    for b in range(documents):
        one = u[b : b + 1]
        alone = route_labels(one, logits[b : b + 1], compared=scale(one), **options)
        assert alone.iterations[0] == together.iterations[b]
        torch.testing.assert_close(alone.label_capsules[0], together.label_capsules[b], atol=1e-5, rtol=0)


def test_capsules_that_are_nearly_alike_stop_at_once_unless_scaled():
    u, logits = inputs(documents=12, capsules=16, labels=5, size=8, sharpness=4.0)
    alike = u.mean(dim=1, keepdim=True) + 0.1 * u  # as the capsules of one document often are
    options = {"agreement": "adaptive-kde", "iterations": 10, "gate": 0.3, "keep_coupling": True}
    assert route_labels(alike, logits, **options).iterations.tolist() == [2] * 12
    scaled = route_labels(alike, logits, compared=alike / 0.1, **options)
    assert scaled.iterations.tolist() == route_labels(u, logits, **options).iterations.tolist()
    assert len(scaled.iterations.unique()) >= 3
    torch.testing.assert_close(scaled.label_capsules, scaled.coupling @ alike)


def test_a_small_step_moves_agreement_by_the_variance_of_the_kernel():
    """ΔNAS ≈ g · mean_j Var_j(k) / mean_j k̄_j, as docs/routing.md derives."""
    u, logits = inputs(documents=2, capsules=9, labels=4)
    seen = 0.4 * (u - u.mean(dim=1, keepdim=True))  # inside every kernel's support
    routed = route_labels(u, logits, agreement="kde", iterations=3, gate=1e-4, compared=seen)
    coupling = logits.softmax(dim=-1)  # (B, n, m)
    kernel = 1.0 - torch.cdist(coupling @ seen, seen).square() / 6
    assert (kernel > 0).all()
    mean = (coupling * kernel).sum(dim=-1)  # (B, n)
    variance = (coupling * (kernel - mean.unsqueeze(-1)).square()).sum(dim=-1)
    expected = 1e-3 * variance.mean(dim=-1) / mean.mean(dim=-1)  # the gain is ten gates
    torch.testing.assert_close(routed.agreement[:, 1] - routed.agreement[:, 0], expected, rtol=0.01, atol=0)


def test_padded_labels_have_no_part_in_a_documents_score():
    u, logits = inputs(documents=4, capsules=12, labels=6, sharpness=4.0)
    valid = torch.arange(6) < torch.tensor([6, 4, 2, 1])[:, None]
    padded = route_labels(u, logits, agreement="adaptive-kde", iterations=10, gate=0.3, valid=valid)
    for b, count in enumerate([6, 4, 2, 1]):
        alone = route_labels(
            u[b : b + 1],
            logits[b : b + 1, :count],
            agreement="adaptive-kde",
            iterations=10,
            gate=0.3,
        )
        used = int(alone.iterations[0])
        assert padded.iterations[b] == used
        torch.testing.assert_close(padded.agreement[b, :used], alone.agreement[0], equal_nan=True)
        torch.testing.assert_close(padded.label_capsules[b, :count], alone.label_capsules[0])


@pytest.mark.parametrize("agreement", AGREEMENTS)
def test_no_tensor_has_a_number_per_document_capsule_label_and_dimension(agreement):
    documents, capsules, labels, size = 3, 24, 10, 6
    u, logits = inputs(documents, capsules, labels, size)
    with RecordSizes() as sizes:
        route_labels(u, logits, agreement=agreement, project=projection()).label_capsules.sum().backward()
    assert max(sizes) < documents * capsules * labels * size


@pytest.mark.parametrize("agreement", AGREEMENTS)
def test_it_works_under_bfloat16_autocast_with_float32_scores(agreement):
    u, logits = inputs(documents=4, capsules=16, labels=5, size=32, dtype=torch.float32)
    project = projection(32, torch.float32)
    logits = logits.bfloat16()
    options = {"agreement": agreement, "project": project, "iterations": 4}
    plain = route_labels(u, logits.float(), **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = route_labels(u, logits, **options)
    assert cast.agreement.dtype == torch.float32
    torch.testing.assert_close(cast.agreement, plain.agreement, atol=0.01, rtol=0.0, equal_nan=True)
    torch.testing.assert_close(cast.label_capsules.float(), plain.label_capsules, atol=0.05, rtol=0.05)
    cast.label_capsules.float().square().sum().backward()
    assert u.grad.isfinite().all()


@pytest.mark.parametrize("keep_coupling", [False, True])
def test_couplings_are_kept_if_asked_for_and_the_last_iteration_goes_unscored(keep_coupling):
    u, logits = inputs()
    routed = route_labels(u, logits, agreement="kde", iterations=3, keep_coupling=keep_coupling)
    assert (routed.coupling is not None) == keep_coupling
    assert routed.agreement[:, :2].isfinite().all()
    assert routed.agreement[:, 2].isnan().all()


def test_a_label_does_not_depend_on_the_others_when_iterations_are_fixed():
    u, logits = inputs()
    both = route_labels(u, logits, agreement="kde").label_capsules
    one = route_labels(u, logits[:, 2:3], agreement="kde").label_capsules
    torch.testing.assert_close(both[:, 2:3], one)
