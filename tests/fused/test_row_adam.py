"""Adam for tables of which a step reads a few rows."""

import pytest
import torch

from nlpcapsule.fused.row_adam import RowAdam


@pytest.mark.parametrize("shape", [(9,), (9, 4), (9, 2, 3)], ids=str)
def test_it_moves_rows_as_torchs_sparse_adam_without_momentum(shape):
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(shape, generator=generator, dtype=torch.float64)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = (RowAdam([ours], lr=0.1), torch.optim.SparseAdam([theirs], lr=0.1, betas=(0.0, 0.999)))
    for _ in range(6):
        rows = torch.randint(0, 8, (1, 5), generator=generator)  # some twice, and the last one never
        values = torch.randn(5, *shape[1:], generator=generator, dtype=torch.float64)
        for table, optimizer in zip((ours, theirs), optimizers, strict=True):
            table.grad = torch.sparse_coo_tensor(rows, values, shape)
            optimizer.step()
    torch.testing.assert_close(ours, theirs)
    assert torch.equal(ours[8], start[8])
    assert not torch.equal(ours[:8], start[:8])


def test_a_table_without_a_gradient_is_left_alone():
    read, unread = (torch.nn.Parameter(torch.zeros(5, 3)) for _ in range(2))
    optimizer = RowAdam([{"params": [read]}, {"params": [unread]}])
    read.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 3), (5, 3))
    optimizer.step()
    assert read[1].all()
    assert not unread.any()


def test_it_keeps_one_number_per_weight():
    table = torch.nn.Parameter(torch.zeros(5, 3))
    optimizer = RowAdam([table])
    table.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 3), (5, 3))
    optimizer.step()
    assert optimizer.state[table].keys() == {"step", "exp_avg_sq"}
