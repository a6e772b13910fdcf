"""Dropout by random bytes: the right share, the right scale, the same twice, and torch's own where small."""

import pytest
import torch
from torch import nn

from nlpcapsule.capsules import dropout
from nlpcapsule.capsules.dropout import Dropout, draw_kept, rectify_and_drop


@pytest.mark.parametrize("rate", [0.0, 0.15, 0.3, 0.9])
def test_every_byte_of_a_number_drops_the_same_share(rate):
    torch.manual_seed(0)
    kept, factor = draw_kept(torch.Size([8 * 40_000]), rate, torch.bfloat16)
    assert set(kept.unique().tolist()) <= {0.0, 1.0}
    shares = kept.reshape(-1, 8).double().mean(dim=0)  # by the byte's place in its number
    assert shares.tolist() == pytest.approx([1 - round(256 * rate) / 256] * 8, abs=0.01 if rate else 0)
    assert factor * (1 - round(256 * rate) / 256) == pytest.approx(1)


def test_many_values_are_dropped_and_scaled_the_same_with_the_same_seed(monkeypatch):
    monkeypatch.setattr(dropout, "FEWEST_VALUES", 10)
    values, layer, results = torch.rand(5, 7) + 1, Dropout(0.5), []
    for _ in range(2):
        torch.manual_seed(4)
        results.append(layer(values))
    assert torch.equal(*results)
    assert set((results[0] / values).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(layer.eval()(values), values)


def test_few_values_are_dropped_as_torch_drops_them():
    values = torch.rand(5, 7)
    torch.manual_seed(4)
    expected = nn.Dropout(0.3)(values)
    torch.manual_seed(4)
    assert torch.equal(Dropout(0.3)(values), expected)


def test_rectifying_and_dropping_at_once_is_one_after_the_other():
    values = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 1, 6) > 0.3
    torch.manual_seed(4)
    kept, factor = draw_kept(values.shape, 0.25, torch.float64)
    expected = torch.relu(values) * kept * mask * factor
    torch.manual_seed(4)
    found = rectify_and_drop(values, mask, 0.25)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(values.shape, dtype=torch.float64)
    gradients = [torch.autograd.grad((each * weights).sum(), values)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients)
