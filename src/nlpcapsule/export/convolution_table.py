"""Convolutions over word vectors as sums of table rows, for prediction on a CPU.

    (W * E x)_t = Σ_o W_o E[x_(t+o)] = Σ_o T_o[x_(t+o)],     T_o = E W_oᵀ   (V, filters)

A state is the sum of one row per offset of the window: the products of word vectors and filters are computed
once for the vocabulary, not once for every position. Exact up to rounding. Padding is the zero vector, and so
are its rows.

The T_o of all windows are one table (V, W, filters), with W the sum of their widths: the rows of a word are
side by side, so that reading it takes few pages of memory.
"""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from nlpcapsule.encoders.convolution import ConvolutionEncoder

_LARGEST = 127  # of 8 bits


class ConvolutionTable(nn.Module):
    """The table of an encoder's convolutions.

    Args:
        encoder: The encoder; its weights are copied.
        int8: Whether the table has 8 bits, with a scale for each filter.
    """

    table: Tensor  # (V W, filters), flat as ONNX Runtime would copy parts of it when it loads the network
    scale: Tensor  # (H,) what a filter's sums are multiplied by

    def __init__(self, encoder: ConvolutionEncoder, int8: bool = False) -> None:
        super().__init__()
        self.windows = encoder.windows
        self.padding_id = encoder.embedding.padding_id
        words = encoder.embedding.table.weight.detach()  # (V, v)
        parts, scales = [], []
        for width, convolution in zip(encoder.windows, encoder.convolutions, strict=True):
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            part = torch.einsum("wv,fvo->wof", words, convolution.weight.detach())  # (V, width, filters)
            # The row of the word itself is always added.
            part[:, _centre(width)] += convolution.bias.detach()
            scale = torch.ones(part.shape[2])
            if int8:
                largest = part.abs().amax(dim=(0, 1))  # (filters,)
                scale = (largest / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
                part = (part / scale).round().to(torch.int8)
            parts.append(part)
            scales.append(scale)
        table = torch.cat(parts, dim=1).flatten(0, 1)
        self.table = nn.Parameter(table, requires_grad=False)
        self.scale = nn.Parameter(torch.cat(scales), requires_grad=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the sums (B, l, H) of table rows, as integers if it has 8 bits, for token ids (B, l)."""
        total, sums = sum(self.windows), []
        for width, start in zip(self.windows, accumulate(self.windows, initial=0), strict=False):
            left = _centre(width)
            padded = nn.functional.pad(tokens, (left, width - 1 - left), value=self.padding_id) * total
            places = [padded[:, o : o + tokens.shape[1]] + start + o for o in range(width)]  # (B, l) each
            sums.append(self._sum_of_rows(places))
        return torch.cat(sums, dim=2)

    def _sum_of_rows(self, places: list[Tensor]) -> Tensor:
        """Return the sums (B, l, filters) of the rows at places (B, l)."""
        if self.table.dtype == torch.int8:
            rows = embedding(torch.stack(places), self.table)  # (width, B, l, filters)
            return _integer_sums(rows.flatten(1)).view(rows.shape[1:])
        rows_of = [embedding(each, self.table) for each in places]
        return sum(rows_of[1:], start=rows_of[0])


def _integer_sums(rows: Tensor) -> Tensor:
    """Return the sums of columns (width, N) of 8 bits: a product with ones adds them as integers."""
    if not torch.compiler.is_exporting():
        return rows.sum(dim=0, dtype=torch.int32)
    inputs, shape = (torch.ones(1, len(rows), dtype=torch.uint8), rows), (1, rows.shape[1])
    return torch.onnx.ops.symbolic("MatMulInteger", inputs, dtype=torch.int32, shape=shape, version=10)


def _centre(width: int) -> int:
    """Return the offset in a window of the word that a state belongs to."""
    return (width - 1) // 2


def table_bytes(encoder: ConvolutionEncoder) -> int:
    """Return the size of an encoder's table in float32."""
    filters = encoder.state_size // len(encoder.windows)
    return 4 * encoder.embedding.table.num_embeddings * filters * sum(encoder.windows)
