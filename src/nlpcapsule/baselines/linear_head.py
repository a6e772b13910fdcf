"""The linear head that label-query's capsules are compared with.

logit_j = ⟨w_j, dropout(x)⟩ + b_j
"""

from __future__ import annotations

from torch import Tensor, nn

from nlpcapsule.networks.label_table import rows_of

_FIRST_BIAS = -4.0  # most labels are absent from most documents


class LinearHead(nn.Module):
    """Map document vectors to log-odds of all labels, or of chosen ones.

    Args:
        size: h, the size of a document's vector.
        label_count: n.
        dropout: On the vectors.
    """

    def __init__(self, size: int, label_count: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(size, label_count)
        nn.init.constant_(self.output.bias, _FIRST_BIAS)

    def forward(self, documents: Tensor, outputs: Tensor | None = None) -> Tensor:
        """Score labels.

        Args:
            documents: (B, h).
            outputs: None for all labels, (n',) ids for the batch, or (B, n') ids per document.

        Returns:
            (B, n) or (B, n') float32.
        """
        documents = self.dropout(documents)
        weight = rows_of(self.output.weight, outputs)  # (n, h) or (B, n', h)
        bias = rows_of(self.output.bias, outputs)  # (n,) or (B, n')
        if weight.dim() == 2:
            return nn.functional.linear(documents, weight, bias).float()
        return (weight @ documents.unsqueeze(-1)).squeeze(-1).float() + bias
