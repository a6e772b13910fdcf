"""Convolutions over word vectors as sums of table rows, for prediction on a CPU.

    (W * E x)_t = Σ_o W_o E[x_(t+o)] = Σ_o T_o[x_(t+o)],     T_o = E W_oᵀ   (V, filters)

A state is the sum of one row per offset of the window: the products of word vectors and filters are computed
once for the vocabulary, not once for every position. Exact up to rounding. Padding is the zero vector, and so
are its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nlpcapsule.encoders.convolution import ConvolutionEncoder

_LARGEST = 127  # of 8 bits


class ConvolutionTables(nn.Module):
    """The tables of an encoder's convolutions.

    Args:
        encoder: The encoder; its weights are copied.
    """

    def __init__(self, encoder: ConvolutionEncoder) -> None:
        super().__init__()
        words = encoder.embedding.table.weight.detach()  # (V, v)
        self.tables = nn.ParameterList()
        for width, convolution in zip(encoder.windows, encoder.convolutions, strict=True):
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            weight = convolution.weight.detach()  # (filters, v, width)
            # The rows of a word are side by side, so that reading it takes few pages of memory.
            table = torch.einsum("wv,fvo->wof", words, weight).contiguous()  # (V, width, filters)
            # The row of the word itself is always added.
            table[:, _centre(width)] += convolution.bias.detach()
            # Flat: ONNX Runtime would copy parts of it when it loads the network.
            self.tables.append(nn.Parameter(table.flatten(0, 1), requires_grad=False))

    @property
    def scale(self) -> Tensor:
        """(H,) what a filter's sums are multiplied by."""
        return torch.ones(sum(table.shape[1] for table in self.tables))

    def forward(self, places: Sequence[Tensor]) -> Tensor:
        """Return the sums (B, l, H) of table rows."""
        sums = []
        for of_width, table in zip(places, self.tables, strict=True):
            rows = [embedding(ids, table) for ids in of_width.unbind()]
            sums.append(sum(rows[1:], start=rows[0]))
        return torch.cat(sums, dim=2)


class SmallTables(nn.Module):
    """Tables of 8 bits, with a scale for each filter.

    Args:
        tables: The tables in float32.
    """

    def __init__(self, tables: ConvolutionTables) -> None:
        super().__init__()
        self.tables, self.scales = nn.ParameterList(), nn.ParameterList()
        for table in tables.tables:
            scale = (table.abs().amax(dim=0) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
            small = (table / scale).round().to(torch.int8)  # (V width, filters)
            self.tables.append(nn.Parameter(small, requires_grad=False))
            self.scales.append(nn.Parameter(scale, requires_grad=False))

    @property
    def scale(self) -> Tensor:
        """(H,) what a filter's sums are multiplied by."""
        return torch.cat(list(self.scales))

    def forward(self, places: Sequence[Tensor]) -> Tensor:
        """Return the sums (B, l, H) of table rows, as int16 if they fit."""
        widest = max(len(of_width) for of_width in places)
        kind = torch.int16 if _LARGEST * widest < 2**15 else torch.int32
        sums = []
        for of_width, table in zip(places, self.tables, strict=True):
            total = _column_sums(embedding(of_width, table).flatten(1))  # (B l filters,)
            sums.append(total.to(kind).view(*of_width.shape[1:], -1))
        return torch.cat(sums, dim=2)


def _column_sums(rows: Tensor) -> Tensor:
    """Return the sums of columns (width, N) of 8 bits: a product with ones adds them as integers."""
    if not torch.compiler.is_exporting():
        return rows.sum(dim=0, dtype=torch.int32)
    inputs, shape = (torch.ones(1, len(rows), dtype=torch.uint8), rows), (1, rows.shape[1])
    return torch.onnx.ops.symbolic("MatMulInteger", inputs, dtype=torch.int32, shape=shape, version=10)


def table_places(tokens: Tensor, width: int, padding_id: int) -> Tensor:
    """Return the rows (width, B, l) of a table at each offset of a window, for token ids (B, l)."""
    left = _centre(width)
    padded = nn.functional.pad(tokens, (left, width - 1 - left), value=padding_id) * width
    return torch.stack([padded[:, o : o + tokens.shape[1]] + o for o in range(width)])


def _centre(width: int) -> int:
    """Return the offset in a window of the word that a state belongs to."""
    return (width - 1) // 2


def table_bytes(encoder: ConvolutionEncoder) -> int:
    """Return the size of an encoder's tables in float32."""
    filters = encoder.state_size // len(encoder.windows)
    return 4 * encoder.embedding.table.num_embeddings * filters * sum(encoder.windows)
