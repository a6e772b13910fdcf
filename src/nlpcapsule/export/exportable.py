"""Encoders without steps that depend on values, so that a network can be exported."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from nlpcapsule.encoders.bilstm import BiLSTMEncoder
from nlpcapsule.encoders.convolution import ConvolutionEncoder
from nlpcapsule.encoders.convolution_tables import ConvolutionTables, table_bytes
from nlpcapsule.encoders.encoder import Encoder
from nlpcapsule.encoders.windowed_transformer import MARKS, WindowedTransformer
from nlpcapsule.errors import ConfigError
from nlpcapsule.networks.label_query import LabelQueryNetwork

MOST_TABLE_BYTES = 2**29  # of a convolution's tables, in float32; larger ones stay convolutions


class ExportableNetwork(nn.Module):
    """A label network as the exporter reads it: token ids and candidates → logits.

    Args:
        network: The network, which is not changed.
        candidates: Whether the labels to score are an input; all labels are scored otherwise.
        table_limit: Most bytes of tables that replace convolutions.
    """

    def __init__(
        self, network: nn.Module, candidates: bool = True, table_limit: int = MOST_TABLE_BYTES
    ) -> None:
        super().__init__()
        self.candidates = candidates
        if not isinstance(network, LabelQueryNetwork):
            raise ConfigError(
                f"{type(network).__name__} cannot be exported: expected `label-query`, alone or in a hybrid"
            )
        encoder = network.document.encoder
        # Copies the network with another encoder in its place.
        self.network = copy.deepcopy(network, {id(encoder): exportable_encoder(encoder, table_limit)})
        self.network.masked_routing = True
        self.eval().requires_grad_(False)

    def forward(self, tokens: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Map token ids (B, l) and label ids (B, C), or None for all labels, to logits (B, C)."""
        return self.network(tokens, candidates).logits


def exportable_encoder(encoder: Encoder, table_limit: int = MOST_TABLE_BYTES) -> nn.Module:
    """Return an encoder with the same states and without steps that depend on values."""
    match encoder:
        case ConvolutionEncoder() if table_bytes(encoder) <= table_limit:
            return TabulatedConvolution(encoder)
        case BiLSTMEncoder():
            return OnnxBiLSTM(encoder)
        case WindowedTransformer():
            return PaddedWindows(encoder)
    return copy.deepcopy(encoder)


class _Substitute(nn.Module):
    """Stands for an encoder in an exported network, whose document vectors it also returns."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder).eval()

    def place(self, tokens: Tensor, states: Tensor, mask: Tensor, idf: Tensor) -> Tensor:
        """Return document vectors (B, E), as the encoder does."""
        return self.encoder.place(tokens, states, mask, idf)


class TabulatedConvolution(_Substitute):
    """A convolution as sums of table rows."""

    encoder: ConvolutionEncoder

    def __init__(self, encoder: ConvolutionEncoder) -> None:
        super().__init__(encoder)
        self.tables = ConvolutionTables(encoder)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map token ids (B, l) to states (B, l, H) and the mask (B, l) of real tokens."""
        mask = tokens != self.encoder.embedding.padding_id
        return self.tables(tokens) * mask.unsqueeze(-1), mask


class OnnxBiLSTM(_Substitute):
    """A bidirectional LSTM as ONNX's operator, which takes the rows' lengths.

    torch's own would be exported step by step, for one length only. Outside of an export the encoder reads.
    """

    encoder: BiLSTMEncoder

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map token ids (B, l) to states (B, l, H) and the mask (B, l) of real tokens."""
        if not torch.compiler.is_exporting():
            return self.encoder(tokens)
        words, mask = self.encoder.embedding(tokens)  # (B, l, v)
        lengths = mask.sum(dim=1).clamp(min=1).to(torch.int32)  # (B,)
        states = words.transpose(0, 1)  # (l, B, v)
        for layer in range(self.encoder.lstm.num_layers):
            states = self._layer(states, lengths, layer)  # (l, B, H)
        return states.transpose(0, 1) * mask.unsqueeze(-1), mask

    def _layer(self, states: Tensor, lengths: Tensor, layer: int) -> Tensor:
        """Map states (l, B, v) to (l, B, H)."""
        lstm = self.encoder.lstm
        weights = [_both_directions(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh")]
        biases = [_both_directions(lstm, f"{name}_l{layer}") for name in ("bias_ih", "bias_hh")]
        shape = (states.shape[0], 2, states.shape[1], lstm.hidden_size)
        found = torch.onnx.ops.symbolic(
            "LSTM",
            (states, *weights, torch.cat(biases, dim=1), lengths),
            {"hidden_size": lstm.hidden_size, "direction": "bidirectional"},
            dtype=states.dtype,
            shape=shape,
            version=14,
        )  # (l, 2, B, H / 2)
        return found.transpose(1, 2).flatten(2)


def _both_directions(lstm: nn.LSTM, name: str) -> Tensor:
    """Return the weights (2, 4 H, …) of both directions with their gates in ONNX's order."""
    found = []
    for suffix in ("", "_reverse"):
        into, forget, cell, out = getattr(lstm, name + suffix).chunk(4)
        found.append(torch.cat([into, out, forget, cell]))
    return torch.stack(found)


class PaddedWindows(_Substitute):
    """A transformer over windows, as many for every document as for the longest.

    Windows that a document does not need are masked out, and states keep the order of windows: what follows
    depends on the mask and not on the order.
    """

    encoder: WindowedTransformer

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map token ids (B, l) to states (B, L, h), zero at padding, and the mask (B, L) of real ones."""
        most, stride = self.encoder.window - MARKS, self.encoder.stride
        padding = self.encoder.encoder.padding_id
        lengths = (tokens != padding).sum(dim=1, keepdim=True)  # (B, 1)
        texts = (lengths - MARKS).clamp(min=0)  # (B, 1)
        further = (texts - most).clamp(min=0)
        counts = 1 + _up(further, stride or most)  # (B, 1) windows of each document
        steps = _up(texts, counts) if stride is None else torch.full_like(counts, stride)
        widest = torch.sym_max(tokens.shape[1] - MARKS - most, 0)
        most_windows = 1 + (widest + (stride or most) - 1) // (stride or most)  # K
        number = torch.arange(most_windows, device=tokens.device)  # (K,)
        start = number * steps  # (B, K) in the text
        longest = steps if stride is None else torch.full_like(steps, most)
        sizes = torch.minimum((texts - start).clamp(min=0), longest)  # (B, K) tokens of the text in a window
        needed = number < counts  # (B, K)
        widths = torch.minimum(sizes + MARKS, lengths).clamp(min=1) * needed  # (B, K)
        column = torch.arange(
            torch.sym_min(self.encoder.window, tokens.shape[1]), device=tokens.device
        )  # (w,)
        mask = column < widths.unsqueeze(2)  # (B, K, w)
        inside = (column > 0) & (column <= sizes.unsqueeze(2)) & needed.unsqueeze(2)
        end = (lengths - 1).clamp(min=0).unsqueeze(2)  # (B, 1, 1) where the row's last mark stands
        source = torch.where(inside, start.unsqueeze(2) + column, end * (column > 0))  # (B, K, w)
        cut = tokens.gather(1, source.flatten(1)).view(source.shape).masked_fill(~mask, padding)
        has_text = (sizes > 0).unsqueeze(2)  # (B, K, 1)
        counted = ((has_text & inside) | (~has_text & mask)).flatten(1)  # (B, K w)
        states = self.encoder.encoder.read(cut.flatten(0, 1), mask.flatten(0, 1))  # (B K, w, h)
        laid = states.view(*counted.shape, -1) * counted.unsqueeze(-1)
        return laid, counted


def _up(total: Tensor, part: Tensor | int) -> Tensor:
    """Divide and round up."""
    return (total + part - 1) // part
