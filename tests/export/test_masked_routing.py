"""Routing without steps that depend on values, against the routing that it stands for."""

import pytest
import torch
from torch import nn

from nlpcapsule.capsules.routing.label_query import route_labels
from nlpcapsule.export.masked_routing import route_labels_masked


@pytest.mark.parametrize("iterations", [1, 2, 6])
@pytest.mark.parametrize("agreement", ["dot", "kde", "adaptive-kde"])
def test_it_gives_the_same_result_and_gradients(agreement, iterations):
    torch.manual_seed(3)
    u = nn.functional.layer_norm(torch.randn(6, 5, 6, dtype=torch.float64), (6,)).requires_grad_()
    logits = torch.randn(6, 4, 5, dtype=torch.float64) * torch.linspace(0.1, 1.5, 6)[:, None, None]
    logits.requires_grad_()
    options = {
        "agreement": agreement,
        "iterations": iterations,
        "compared": (u - u.mean(dim=1, keepdim=True)) / 0.6**0.5,
        "project": nn.Sequential(nn.Linear(6, 6, bias=False), nn.LayerNorm(6)).double(),
        "keep_coupling": True,
        "valid": torch.arange(4) < torch.tensor([[4], [3], [4], [2], [4], [1]]),
    }
    plain, masked = (route(u, logits, **options) for route in (route_labels, route_labels_masked))
    if agreement == "adaptive-kde" and iterations == 6:
        assert len(set(plain.iterations.tolist())) > 1
    torch.testing.assert_close(masked.label_capsules, plain.label_capsules)
    torch.testing.assert_close(masked.coupling, plain.coupling)
    assert masked.iterations.tolist() == plain.iterations.tolist()
    width = plain.agreement.shape[1]  # it ends with the last document to stop
    torch.testing.assert_close(
        masked.agreement[:, :width], plain.agreement, equal_nan=True, check_dtype=False
    )
    assert masked.agreement[:, width:].isnan().all()
    expected = torch.autograd.grad(plain.label_capsules.square().sum(), (u, logits), retain_graph=True)
    found = torch.autograd.grad(masked.label_capsules.square().sum(), (u, logits))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_document_that_has_stopped_does_not_go_on():
    """Not even if its agreement would change again: some of these documents would."""
    torch.manual_seed(0)
    u = nn.functional.layer_norm(torch.randn(64, 5, 6, dtype=torch.float64), (6,))
    logits = 3 * torch.randn(64, 4, 5, dtype=torch.float64)
    project = nn.Sequential(nn.Linear(6, 6, bias=False), nn.LayerNorm(6)).double()
    options = {"compared": (u - u.mean(dim=1, keepdim=True)) / 0.6**0.5, "project": project}
    scores = route_labels_masked(u, logits, iterations=12, eps=0, **options).agreement[:, :11]
    is_still = scores.diff(dim=1).abs() < 0.05  # (B, 10)
    assert (is_still[:, :-1] & ~is_still[:, 1:]).any()
    plain, masked = (
        route(u, logits, iterations=12, eps=0.05, **options) for route in (route_labels, route_labels_masked)
    )
    assert masked.iterations.tolist() == plain.iterations.tolist()
    torch.testing.assert_close(masked.label_capsules, plain.label_capsules)
