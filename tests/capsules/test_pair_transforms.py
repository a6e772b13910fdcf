"""W_ij: the votes of the outputs asked for, and gradients and updates that stay with their rows."""

import pytest
import torch

from nlpcapsule.capsules import pair_transforms
from nlpcapsule.capsules.pair_transforms import PairTransforms

B, M, N, D = 3, 5, 7, 4
MOMENTS = ("exp_avg", "exp_avg_sq")  # what SparseAdam remembers of each number
ASKED = {
    "all outputs": None,
    "outputs of the batch": torch.tensor([0, 2, 6]),
    "outputs of each document": torch.tensor([[6, 2], [0, 0], [3, 5]]),
}
every_kind = pytest.mark.parametrize("outputs", ASKED.values(), ids=ASKED)


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def transforms(request):
    torch.manual_seed(0)
    return PairTransforms(N, M, D, deviation=1.0, sparse=request.param).double()


def formed_plainly(transforms, capsules, outputs):
    """û (B, m, n', d) by an einsum over all of W."""
    matrices = transforms.rows.view(N, M, D, D)
    votes = torch.einsum("nmhk,bmk->bmnh", matrices, capsules)
    if outputs is None:
        return votes
    ids = outputs.expand(B, -1)  # (B, n')
    return torch.stack([votes[row][:, ids[row]] for row in range(B)])


def some_capsules():
    return torch.randn(B, M, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def asked_for(outputs):
    return list(range(N)) if outputs is None else outputs.unique().tolist()


@every_kind
def test_votes_of_the_outputs_asked_for_are_those_of_a_plain_einsum(transforms, outputs):
    capsules = some_capsules().requires_grad_()
    votes = transforms(capsules, outputs).votes
    expected = formed_plainly(transforms, capsules, outputs)
    torch.testing.assert_close(votes, expected)
    pull = torch.randn(votes.shape, dtype=votes.dtype)
    leaves = (capsules, transforms.rows)
    ours, theirs = (torch.autograd.grad((each * pull).sum(), leaves) for each in (votes, expected))
    torch.testing.assert_close(ours[0], theirs[0])
    torch.testing.assert_close(ours[1].to_dense(), theirs[1])
    with torch.no_grad():  # without gradients all rows are read in place
        torch.testing.assert_close(transforms(capsules, outputs).votes, expected)


@pytest.mark.parametrize("gathered", [1, 2 * M * D * D, 2 * 2 * M * D * D])
def test_documents_gathered_in_parts_vote_as_at_once(transforms, gathered, monkeypatch):
    capsules, outputs = some_capsules(), ASKED["outputs of each document"]
    whole = transforms(capsules, outputs).votes
    parts = []
    gather = transforms.gather
    monkeypatch.setattr(pair_transforms, "_GATHERED", gathered)
    monkeypatch.setattr(transforms, "gather", lambda ids: (parts.append(len(ids)), gather(ids))[1])
    in_parts = transforms(capsules, outputs).votes
    assert torch.equal(in_parts, whole)
    assert parts == ([2, 1] if gathered > 2 * M * D * D else [1, 1, 1])
    pull = torch.randn(whole.shape, dtype=whole.dtype)
    (ours,), (theirs,) = (
        torch.autograd.grad((each * pull).sum(), [transforms.rows]) for each in (in_parts, whole)
    )
    torch.testing.assert_close(ours.to_dense(), theirs.to_dense())


@every_kind
def test_a_sparse_gradient_holds_the_rows_asked_for_and_no_others(outputs):
    transforms = PairTransforms(N, M, D, deviation=1.0, sparse=True).double()
    transforms(some_capsules(), outputs).votes.square().sum().backward()
    gradient = transforms.rows.grad
    assert gradient.is_sparse
    assert gradient.coalesce().indices()[0].tolist() == asked_for(outputs)
    assert gradient.coalesce().values().any(dim=1).all()


def test_without_sparse_gradients_all_rows_have_one():
    transforms = PairTransforms(N, M, D, deviation=1.0)
    transforms(some_capsules().float(), torch.tensor([1])).votes.sum().backward()
    assert not transforms.rows.grad.is_sparse
    assert transforms.rows.grad.any(dim=1).tolist() == [row == 1 for row in range(N)]


def test_rows_not_asked_for_keep_their_values_and_what_the_optimizer_knows_of_them():
    torch.manual_seed(0)
    transforms = PairTransforms(N, M, D, deviation=1.0, sparse=True)
    optimizer = torch.optim.SparseAdam(transforms.parameters(), lr=0.1)

    def step(outputs):
        optimizer.zero_grad()
        transforms(some_capsules().float(), outputs).votes.square().sum().backward()
        optimizer.step()
        known = optimizer.state[transforms.rows]
        return [tensor.clone() for tensor in (transforms.rows.detach(), *(known[m] for m in MOMENTS))]

    before = step(None)
    asked = torch.tensor([[6, 2], [2, 2], [6, 3]])
    after = step(asked)
    touched = [row in asked_for(asked) for row in range(N)]
    for old, new in zip(before, after, strict=True):
        assert (old != new).any(dim=1).tolist() == touched
