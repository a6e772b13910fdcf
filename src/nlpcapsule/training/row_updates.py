"""Tables of which a step updates only the rows that it has read, so that its cost does not grow with them.

The gradients of such tables are sparse. Processes exchange the rows that they have read, and a row's moving
average is brought up to date when the row is about to change.
"""

from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from nlpcapsule.capsules.pair_transforms import PairTransforms
from nlpcapsule.config.settings import TrainingSettings
from nlpcapsule.networks.label_table import LabelTable
from nlpcapsule.training.shared_work import this_process

MANY_LABELS = 20_000  # a dense update of fewer rows costs less than finding those that were read


def choose_row_updates(network: nn.Module, settings: TrainingSettings) -> None:
    """Give large label tables sparse gradients if documents are routed to some labels only."""
    for module in network.modules():
        if isinstance(module, LabelTable):
            module.sparse = settings.negatives != "all" and module.label_count > MANY_LABELS


def row_tables(network: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters with sparse gradients, by name."""
    return {
        f"{prefix}.{name}".removeprefix("."): parameter
        for prefix, module in network.named_modules()
        if isinstance(module, PairTransforms | LabelTable) and module.sparse
        for name, parameter in module.named_parameters(recurse=False)
    }


def keep_rows_apart(network: nn.Module) -> list[nn.Parameter]:
    """Exclude tables with sparse gradients from the exchange of dense ones, and return them.

    Torch's distributed networks would make all of a table's gradient dense, or fail on a GPU.
    """
    tables = row_tables(network)
    network._ddp_params_and_buffers_to_ignore = list(tables)  # type: ignore[assignment] # torch's own name
    return list(tables.values())


@torch.no_grad()
def exchange_rows(tables: list[nn.Parameter]) -> None:
    """Replace the gradients of tables by their mean over all processes."""
    process = this_process()
    if process.num_processes == 1:
        return
    for table in tables:
        grad = torch.zeros_like(table, layout=torch.sparse_coo) if table.grad is None else table.grad
        grad = grad.coalesce()
        indices, values = grad.indices()[0], grad.values()  # (r,), (r, …)
        counts = gather(torch.tensor([len(indices)], device=indices.device)).tolist()
        table.grad = torch.sparse_coo_tensor(
            _of_all(indices, counts).unsqueeze(0),
            _of_all(values / process.num_processes, counts),
            table.shape,
            check_invariants=False,
        )


def _of_all(rows: Tensor, counts: Sequence[int]) -> Tensor:
    """Return the rows (r, …) of all processes, which have `counts` of them."""
    padded = rows.new_zeros(max(counts), *rows.shape[1:])
    padded[: len(rows)] = rows
    parts = gather(padded).view(len(counts), *padded.shape)  # (processes, r, …)
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


class MovingAverage(AveragedModel):
    """Exponential moving average of a network's weights, a ← d a + (1 − d) w after every step.

    The row of a table with sparse gradients is averaged when it is about to change, and by `catch_up`. While
    w is unchanged, T steps make a ← w + dᵀ (a − w).
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        tables = row_tables(network)
        addresses = {table.data_ptr() for table in tables.values()}
        average = get_ema_multi_avg_fn(decay)

        def average_dense(averages: Sequence[Tensor], weights: Sequence[Tensor], count: Tensor | int) -> None:
            pairs = zip(averages, weights, strict=True)
            dense = [pair for pair in pairs if pair[1].data_ptr() not in addresses]
            if dense:
                average([pair[0] for pair in dense], [pair[1] for pair in dense], count)

        super().__init__(network, multi_avg_fn=average_dense)
        self._decay, own = decay, dict(self.module.named_parameters())
        # With the step (n,) that each row was averaged at: all rows are copied after the first one.
        self._tables = [
            (table, own[name], torch.ones(len(table), dtype=torch.int64, device=table.device))
            for name, table in tables.items()
        ]

    @torch.no_grad()
    def prepare_step(self) -> None:
        """Average the rows that the gradients are about to change."""
        # A GPU waits to compare the number.
        for table, average, averaged in self._tables if self.n_averaged > 0 else []:
            if table.grad is not None:
                self._average_rows(table, average, averaged, table.grad.coalesce().indices()[0])

    @torch.no_grad()
    def catch_up(self) -> None:
        """Average all rows."""
        for table, average, averaged in self._tables if self.n_averaged > 0 else []:
            self._average_rows(table, average, averaged, torch.arange(len(table), device=table.device))

    def _average_rows(self, table: Tensor, average: Tensor, averaged: Tensor, rows: Tensor) -> None:
        passed = self.n_averaged - averaged[rows]
        averaged[rows] = self.n_averaged
        weights = table[rows]
        left = (self._decay**passed).reshape(-1, *[1] * (table.dim() - 1))
        average[rows] = weights + left * (average[rows] - weights)

    def load_state_dict(self, *args: Any, **options: Any) -> Any:
        """Restore the averages of a checkpoint, before which all rows were averaged."""
        result = super().load_state_dict(*args, **options)
        for _, _, averaged in self._tables:
            averaged.fill_(max(1, int(self.n_averaged)))
        return result
