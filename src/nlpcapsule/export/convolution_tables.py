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

_LARGEST = 127  # of 8 bits


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
        sums = [_sum_of_rows(tokens, table, self.padding_id) for table in self.tables]
        return torch.cat([torch.relu(total) for total in sums], dim=2)


class SmallTables(nn.Module):
    """Tables of 8 bits, with a scale for each filter.

    Args:
        tables: The tables in float32.
    """

    def __init__(self, tables: ConvolutionTables) -> None:
        super().__init__()
        self.padding_id = tables.padding_id
        self.tables, self.scales = nn.ParameterList(), nn.ParameterList()
        for table in tables.tables:
            scale = (table.abs().amax(dim=(0, 1)) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
            small = (table / scale).round().to(torch.int8)  # (width, V, filters)
            self.tables.append(nn.Parameter(small, requires_grad=False))
            self.scales.append(nn.Parameter(scale, requires_grad=False))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return states (B, l, H) after the ReLU, not yet zeroed at padding, of token ids (B, l)."""
        sums = [_sum_of_small_rows(tokens, table, self.padding_id) for table in self.tables]
        scaled = [torch.relu(total * scale) for total, scale in zip(sums, self.scales, strict=True)]
        return torch.cat(scaled, dim=2)


def _sum_of_rows(tokens: Tensor, table: Tensor, padding_id: int) -> Tensor:
    """Return Σ_o T_o[x_(t+o)] (B, l, filters) of token ids (B, l) and tables (width, V, filters)."""
    rows = [
        nn.functional.embedding(ids, part)
        for ids, part in zip(_windows(tokens, len(table), padding_id), table, strict=True)
    ]
    return sum(rows[1:], start=rows[0])


def _sum_of_small_rows(tokens: Tensor, table: Tensor, padding_id: int) -> Tensor:
    """Return the result of `_sum_of_rows` for tables of 8 bits: a product with ones, which adds integers."""
    width, words, filters = table.shape
    ids = torch.stack(_windows(tokens, width, padding_id))  # (width, B, l)
    ids = ids + words * torch.arange(width, device=ids.device)[:, None, None]
    rows = nn.functional.embedding(ids, table.flatten(0, 1)).flatten(1)  # (width, B l filters)
    if not torch.compiler.is_exporting():
        return rows.float().sum(dim=0).view(*tokens.shape, filters)
    ones = torch.ones(1, width, dtype=torch.uint8)
    shape = (1, rows.shape[1])
    total = torch.onnx.ops.symbolic("MatMulInteger", (ones, rows), dtype=torch.int32, shape=shape, version=10)
    return total.float().view(*tokens.shape, filters)


def _windows(tokens: Tensor, width: int, padding_id: int) -> list[Tensor]:
    """Return the ids (B, l) at each offset of a window around the positions of token ids (B, l)."""
    left = _centre(width)
    padded = nn.functional.pad(tokens, (left, width - 1 - left), value=padding_id)
    return [padded[:, offset : offset + tokens.shape[1]] for offset in range(width)]


def _centre(width: int) -> int:
    """Return the offset in a window of the word that a state belongs to."""
    return (width - 1) // 2


def table_bytes(encoder: ConvolutionEncoder) -> int:
    """Return the size of an encoder's tables in float32."""
    filters = encoder.state_size // len(encoder.windows)
    return 4 * encoder.embedding.table.num_embeddings * filters * sum(encoder.windows)
