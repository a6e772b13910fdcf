"""The labels' rows of a network, gathered as ONNX Runtime gathers them fastest."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import embedding

from nlpcapsule.networks.label_table import LabelTable


class GatheredRows(nn.Module):
    """The tables of a `LabelTable`, read row by row: an index would be exported as a slower `GatherND`.

    Args:
        labels: The tables.
    """

    def __init__(self, labels: LabelTable) -> None:
        super().__init__()
        self.labels = labels

    def rows_of(self, outputs: Tensor | None) -> dict[str, Tensor]:
        """Return the rows of every table, by its name, for all labels, or for ids (B, C)."""
        tables: dict[str, Tensor] = dict(self.labels.named_parameters(recurse=False))
        if outputs is None:
            return tables
        return {
            name: embedding(outputs, table)
            if table.dim() == 2
            else embedding(outputs, table[:, None])[..., 0]
            for name, table in tables.items()
        }
