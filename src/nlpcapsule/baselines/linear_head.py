"""The linear head that label-query's capsules are compared with.

logit_j = ⟨w_j, dropout(x)⟩ + b_j
"""

from __future__ import annotations

from torch import Tensor, nn

from nlpcapsule.networks.label_table import rows_of
from nlpcapsule.networks.scored import output_layer


class LinearHead(nn.Module):
    """Map document vectors (B, h) to log-odds of all labels, or of chosen ones."""

    def __init__(self, size: int, label_count: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = output_layer(size, label_count)

    def forward(self, documents: Tensor, outputs: Tensor | None = None) -> Tensor:
        """Return float32 log-odds (B, n) of all labels, or (B, n') of ids (n',) or (B, n')."""
        documents = self.dropout(documents)
        weight = rows_of(self.output.weight, outputs)  # (n, h) or (B, n', h)
        bias = rows_of(self.output.bias, outputs)  # (n,) or (B, n')
        if weight.dim() == 2:
            return nn.functional.linear(documents, weight, bias).float()
        return (weight @ documents.unsqueeze(-1)).squeeze(-1).float() + bias
