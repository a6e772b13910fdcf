"""The further losses of `label-query` against plain loops."""

import math

import pytest
import torch

from nlpcapsule.models.auxiliary import SILENCE, decoupled_softmax, divergence, silencing


def batch(seed=4, documents=5, outputs=6):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(documents, outputs, generator=generator)
    others = 3 * torch.randn(documents, outputs, generator=generator)
    targets = (torch.rand(documents, outputs, generator=generator) < 0.3).float()
    targets[0], targets[1] = 0, 1  # a document without labels, and one without negatives
    valid = torch.rand(documents, outputs, generator=generator) < 0.7
    return logits, others, targets, valid | (targets > 0)


def sigmoid(logit):
    return 1 / (1 + math.exp(-logit))


def kl(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


@pytest.mark.parametrize("masked", [False, True])
def test_a_labels_ranking_loss_is_its_softmax_against_the_negatives_alone(masked):
    logits, _, targets, valid = batch()
    total = 0.0
    for row, own, real in zip(logits.tolist(), targets.tolist(), valid.tolist(), strict=True):
        negatives = [s for s, y, v in zip(row, own, real, strict=True) if not y and (v or not masked)]
        for score in (s for s, y in zip(row, own, strict=True) if y):
            total -= math.log(math.exp(score) / (math.exp(score) + sum(map(math.exp, negatives))))
    loss = decoupled_softmax(logits, targets, valid if masked else None)
    assert loss.item() == pytest.approx(total / len(logits), rel=1e-5)


def test_the_ranking_loss_has_finite_gradients_for_every_document():
    logits, _, targets, valid = batch()
    logits.requires_grad_()
    decoupled_softmax(logits, targets, valid).backward()
    assert logits.grad.isfinite().all()
    assert not logits.grad[0].any()  # no label
    assert logits.grad[2:].any()


@pytest.mark.parametrize("masked", [False, True])
def test_the_divergence_is_that_of_both_directions_halved(masked):
    logits, others, _, valid = batch()
    total = 0.0
    for b in range(len(logits)):
        for j in range(logits.shape[1]):
            if valid[b, j] or not masked:
                p, q = sigmoid(logits[b, j].item()), sigmoid(others[b, j].item())
                total += (kl(p, q) + kl(q, p)) / 2
    assert divergence(logits, others, valid if masked else None).item() == pytest.approx(
        total / len(logits), rel=1e-4
    )
    assert divergence(logits, logits).item() == 0.0


def test_capsules_are_silenced_by_the_labels_that_are_believed_to_have_them():
    logits, _, _, valid = batch()
    coupling = torch.randn(5, 6, 4, generator=torch.Generator().manual_seed(1))
    found = silencing(coupling, logits, valid)  # (B, 1, m)
    for b in range(5):
        for i in range(4):
            explained = sum(
                sigmoid(logits[b, j].item()) * coupling[b, j].softmax(dim=0)[i].item()
                for j in range(6)
                if valid[b, j]
            )
            assert found[b, 0, i].item() == pytest.approx(SILENCE * explained, rel=1e-4)
