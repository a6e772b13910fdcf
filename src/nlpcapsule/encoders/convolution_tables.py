"""Convolutions over word vectors as sums of table rows, for prediction on a CPU.

    (W * E x)_t = Σ_o W_o E[x_(t+o)] = Σ_o T_o[x_(t+o)],     T_o = E W_oᵀ   (V, filters)

A state is the sum of one row per offset of the window: the products of word vectors and filters are computed
once for the vocabulary, not once for every position. Exact up to rounding. Padding is the zero vector, and so
are its rows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nlpcapsule.encoders.convolution import ConvolutionEncoder


class ConvolutionTables(nn.Module):
    """The tables of an encoder's convolutions.

    Args:
        encoder: The encoder; its weights are copied.
    """

    def __init__(self, encoder: ConvolutionEncoder) -> None:
        super().__init__()
        self.windows = encoder.windows
        self.padding_id = encoder.embedding.padding_id
        words = encoder.embedding.table.weight.detach()  # (V, v)
        self.tables = nn.ParameterList()
        for width, convolution in zip(self.windows, encoder.convolutions, strict=True):
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            weight = convolution.weight.detach()  # (filters, v, width)
            table = torch.einsum("wv,fvo->owf", words, weight).contiguous()  # (width, V, filters)
            table[_centre(width)] += convolution.bias.detach()  # the row of the word itself is always added
            self.tables.append(nn.Parameter(table, requires_grad=False))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return states (B, l, H) after the ReLU, not yet zeroed at padding, of token ids (B, l)."""
        states = []
        for width, table in zip(self.windows, self.tables, strict=True):
            left = _centre(width)
            padded = nn.functional.pad(tokens, (left, width - 1 - left), value=self.padding_id)
            rows = (padded[:, offset : offset + tokens.shape[1]] for offset in range(width))
            parts = [nn.functional.embedding(row, part) for row, part in zip(rows, table, strict=True)]
            states.append(torch.relu(sum(parts[1:], start=parts[0])))  # (B, l, filters)
        return torch.cat(states, dim=2)


def _centre(width: int) -> int:
    """Return the offset in a window of the word that a state belongs to."""
    return (width - 1) // 2


def table_bytes(encoder: ConvolutionEncoder) -> int:
    """Return the size of an encoder's tables in float32."""
    filters = encoder.state_size // len(encoder.windows)
    return 4 * encoder.embedding.table.num_embeddings * filters * sum(encoder.windows)
