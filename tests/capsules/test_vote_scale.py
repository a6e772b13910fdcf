"""The scale at which adaptive routing compares capsules."""

from __future__ import annotations

import pytest
import torch

from nlpcapsule.capsules.vote_scale import VoteScale


def spread(capsules: torch.Tensor) -> torch.Tensor:
    """h² (B,): the mean squared distance from the document's mean, per number."""
    return (capsules - capsules.mean(dim=1, keepdim=True)).square().mean(dim=(1, 2))


def some_capsules(*spreads: float, seed: int = 1) -> torch.Tensor:
    """Documents (B, 7, 5) with the given spreads around means far from zero."""
    torch.manual_seed(seed)
    noise = torch.randn(len(spreads), 7, 5, dtype=torch.float64)
    noise = noise - noise.mean(dim=1, keepdim=True)
    return 3.0 + noise * (torch.tensor(spreads) / spread(noise)).sqrt()[:, None, None]


def test_distances_are_divided_by_bandwidth_and_typical_spread() -> None:
    scale = VoteScale(4.0).double().eval()
    scale.log_spread.fill_(0.01).log_()
    u = some_capsules(0.02, 0.5)
    coupling = torch.rand(2, 3, 7, dtype=torch.float64).softmax(dim=-1)
    seen = scale(u)
    before = torch.cdist(coupling @ u, u).square()
    after = torch.cdist(coupling @ seen, seen).square()
    torch.testing.assert_close(after, before / (4.0 * 0.01))


def test_training_learns_the_geometric_mean_of_spreads() -> None:
    scale = VoteScale(1.0).double().train()
    scale(some_capsules(0.1, 1.0))
    # A ten-thousandth of the squared length, 9 and a little, is taken to be there at least.
    assert scale.log_spread.exp().item() == pytest.approx(0.1**0.5, rel=0.02)
    scale(some_capsules(10.0))
    assert scale.log_spread.exp().item() == pytest.approx((0.1**0.5 * 10.0) ** 0.5, rel=0.02)
    for _ in range(1000):
        scale(some_capsules(0.25))
    assert scale.log_spread.exp().item() == pytest.approx(0.25, rel=0.01)


def test_what_it_learned_is_part_of_the_weights() -> None:
    scale, other = VoteScale(1.0).double().train(), VoteScale(1.0).double()
    scale(some_capsules(0.3))
    other.load_state_dict(scale.state_dict())
    u = some_capsules(0.3, seed=2)
    assert torch.equal(other.eval()(u), scale.eval()(u))


def test_outside_training_nothing_is_learned_and_batch_mates_do_not_matter() -> None:
    scale = VoteScale(2.0).double().eval()
    u = some_capsules(0.1, 5.0)
    together = scale(u)
    assert scale.log_spread.item() == 0.0
    assert scale.batches.item() == 0
    torch.testing.assert_close(scale(u[:1]), together[:1])


def test_padding_has_no_part_in_mean_and_spread() -> None:
    u = some_capsules(0.1, 0.4)
    real = torch.arange(7) < torch.tensor([[4], [7]])
    padded = torch.where(real.unsqueeze(-1), u, 1e3)
    scale, alone = VoteScale(1.0).double(), VoteScale(1.0).double()
    seen = scale(padded, real)
    spreads = spread(u[:1, :4]), spread(u[1:])
    assert scale.log_spread.exp().item() == pytest.approx((spreads[0] * spreads[1]).sqrt().item(), rel=0.02)
    alone.load_state_dict(scale.state_dict())
    torch.testing.assert_close(seen[0, :4], alone.eval()(u[:1, :4])[0])


def test_capsules_that_are_all_alike_stay_finite() -> None:
    scale = VoteScale(1.0)
    u = torch.randn(2, 1, 5).expand(2, 7, 5).requires_grad_()
    for _ in range(3):
        seen = scale(u)
    assert seen.abs().max() < 1e-3
    assert scale.log_spread.isfinite()


def test_gradients_reach_the_capsules_and_not_the_scale() -> None:
    scale = VoteScale(1.0).double()
    u = some_capsules(0.3).requires_grad_()
    scale(u).square().sum().backward()
    assert u.grad is not None
    assert u.grad.abs().sum() > 0
    assert not list(scale.parameters())


def test_bfloat16_capsules_are_compared_in_float32() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert VoteScale(1.0)(some_capsules(0.3).bfloat16()).dtype == torch.float32


def test_the_reach_narrows_while_too_many_documents_stand_still_and_widens_while_too_few_do() -> None:
    still, moving = [-0.50, -0.51], [-0.50, -0.90]
    scale = VoteScale(2.0).train()
    scale.steer(torch.tensor([still, still, still, moving]), eps=0.05)
    narrower = scale.bandwidth.item()
    assert narrower < 2.0
    scale.steer(torch.tensor([moving, moving, still, moving]), eps=0.05)
    assert scale.bandwidth.item() == pytest.approx(2.0)  # as far as it had gone, back
    scale.steer(torch.tensor([still, moving]), eps=0.05)
    assert scale.bandwidth.item() == pytest.approx(2.0)  # half of them: as it should be


def test_the_reach_stays_outside_training_and_where_no_second_iteration_is_scored() -> None:
    scale = VoteScale(2.0).eval()
    scale.steer(torch.tensor([[-0.5, -0.5]]), eps=0.05)
    scale.train()
    scale.steer(torch.tensor([[-0.5]]), eps=0.05)
    scale.steer(torch.tensor([[-0.5, torch.nan]]), eps=0.05)
    assert scale.bandwidth.item() == 2.0
