"""The losses against plain loops."""

import math

import pytest
import torch

from nlpcapsule.networks.losses import label_loss
from nlpcapsule.networks.scored import log_odds


def batch(seed=4, documents=5, outputs=6):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(documents, outputs, generator=generator)
    targets = (torch.rand(documents, outputs, generator=generator) < 0.3).float()
    targets[0] = 0  # a document without labels
    valid = torch.rand(documents, outputs, generator=generator) < 0.7
    return logits, targets, valid | (targets > 0)


def sigmoid(logit):
    return 1 / (1 + math.exp(-logit))


def bce_term(logit, target):
    return -math.log(sigmoid(logit) if target else 1 - sigmoid(logit))


def margin_term(logit, target):
    length = sigmoid(logit)
    return max(0.0, 0.9 - length) ** 2 if target else max(0.0, length - 0.1) ** 2


def elementwise_loss(term, logits, targets, valid, weight):
    total = 0.0
    for document in range(len(logits)):
        for j in range(logits.shape[1]):
            if valid[document, j]:
                target = targets[document, j].item()
                total += (1.0 if target else weight) * term(logits[document, j].item(), target)
    return total / len(logits)


def spread_loss(logits, targets, valid, weight):
    total = 0.0
    for document in range(len(logits)):
        outputs = [j for j in range(logits.shape[1]) if valid[document, j]]
        own = [j for j in outputs if targets[document, j]]
        others = [j for j in outputs if not targets[document, j]]
        for t in own:
            for j in others:
                gap = sigmoid(logits[document, t].item()) - sigmoid(logits[document, j].item())
                total += max(0.0, 0.4 - gap) ** 2 / len(own)
    return weight * total / len(logits)


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["bce", "margin", "spread"])
def test_a_loss_equals_its_loop(kind, masked, weight):
    logits, targets, valid = batch()
    everywhere = torch.ones_like(valid)
    actual = label_loss(kind, logits, targets, valid if masked else None, weight)
    where = valid if masked else everywhere
    if kind == "spread":
        expected = spread_loss(logits, targets, where, weight)
    else:
        term = bce_term if kind == "bce" else margin_term
        expected = elementwise_loss(term, logits, targets, where, weight)
    assert actual.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["bce", "margin", "spread"])
def test_what_only_fills_up_gets_no_gradient(kind):
    logits, targets, valid = batch()
    logits.requires_grad_()
    label_loss(kind, logits, targets, valid).backward()
    assert not valid.all()
    assert not logits.grad[~valid].any()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["bce", "margin", "spread"])
def test_documents_without_labels_are_no_problem(kind):
    loss = label_loss(kind, torch.randn(2, 3), torch.zeros(2, 3))
    assert loss.isfinite()


@pytest.mark.parametrize("kind", ["margin", "spread"])
def test_well_separated_lengths_cost_nothing(kind):
    logits = log_odds(torch.tensor([[0.95, 0.05, 0.02]]))
    assert label_loss(kind, logits, torch.tensor([[1.0, 0.0, 0.0]])).item() == 0


def test_log_odds_are_undone_by_the_sigmoid():
    lengths = torch.tensor([1e-12, 1e-7, 0.1, 0.5, 0.9, 0.9999])
    torch.testing.assert_close(torch.sigmoid(log_odds(lengths)), lengths)


def test_log_odds_are_finite_at_both_ends():
    logits = log_odds(torch.tensor([0.0, 1.0], requires_grad=True))
    assert logits.isfinite().all()
    assert logits[0] < -60
    assert logits[1] > 15


@pytest.mark.parametrize("length", [1e-12, 1e-9, 0.3])
def test_a_capsule_however_short_gets_a_gradient(length):
    activation = torch.tensor(length, requires_grad=True)
    log_odds(activation).backward()
    assert activation.grad.item() == pytest.approx(1 / (length * (1 - length)), rel=1e-4)
