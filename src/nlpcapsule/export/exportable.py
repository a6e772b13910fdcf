"""Networks and encoders without steps that depend on values, so that they can be exported."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from nlpcapsule.encoders.bilstm import BiLSTMEncoder
from nlpcapsule.encoders.convolution import ConvolutionEncoder
from nlpcapsule.encoders.encoder import Encoder
from nlpcapsule.encoders.windowed_transformer import MARKS, WindowedTransformer
from nlpcapsule.errors import ConfigError
from nlpcapsule.export.convolution_table import ConvolutionTable, table_bytes
from nlpcapsule.export.exportable_paper import ExportablePaper
from nlpcapsule.export.label_rows import GatheredRows
from nlpcapsule.export.masked_routing import route_labels_masked
from nlpcapsule.export.pooling import CapsulesIn8Bits, pooled_maximum
from nlpcapsule.networks.label_query import LabelQueryNetwork
from nlpcapsule.networks.paper import PaperNetwork

MOST_TABLE_BYTES = 2**29  # of a convolution's tables; larger ones stay convolutions


class ExportableNetwork(nn.Module):
    """A label network as the exporter reads it: token ids and candidates → logits.

    The documents of a batch have the same length: there is no padding, and no time is spent on masks.

    Args:
        network: The network, which is not changed.
        candidates: Whether the labels to score are an input; all labels are scored otherwise.
        int8: Whether tables that replace convolutions have 8 bits.
        table_limit: Most bytes of such tables.
    """

    def __init__(
        self,
        network: nn.Module,
        candidates: bool = True,
        int8: bool = False,
        table_limit: int = MOST_TABLE_BYTES,
    ) -> None:
        super().__init__()
        self.candidates = candidates
        self.network: nn.Module
        match network:
            case LabelQueryNetwork():
                encoder = network.document.encoder
                # Copies the network with another encoder in its place.
                substitute = exportable_encoder(encoder, int8, table_limit)
                copied = copy.deepcopy(network, {id(encoder): substitute})
                copied.route_labels = route_labels_masked
                copied.largest_states = pooled_maximum
                queries = copied.labels.get_parameter("query")
                queries.data = queries @ copied.key.weight  # ⟨q, K u⟩ = ⟨Kᵀ q, u⟩, so K is left out
                copied.add_module("key", nn.Identity())
                copied.add_module("labels", GatheredRows(copied.labels))
                if int8 and encoder.rectified and copied.document.compress_query is not None:
                    copied.add_module("document", CapsulesIn8Bits(copied.document))
                self.network = copied
            case PaperNetwork() if int8:
                raise ConfigError("`paper` is exported in float32 only: leave --int8 out")
            case PaperNetwork():
                self.network = ExportablePaper(network)
            case _:
                expected = "expected `label-query`, alone or in a hybrid, or `paper`"
                raise ConfigError(f"{type(network).__name__} cannot be exported: {expected}")
        self.eval().requires_grad_(False)

    def forward(self, tokens: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Map token ids (B, l) and label ids (B, C), or None for all labels, to logits (B, C)."""
        return self.network(tokens, candidates).logits


def exportable_encoder(
    encoder: Encoder, int8: bool = False, table_limit: int = MOST_TABLE_BYTES
) -> nn.Module:
    """Return an encoder of unpadded documents, without steps that depend on values.

    Raises:
        ConfigError: If there is none for this encoder.
    """
    match encoder:
        case ConvolutionEncoder() if table_bytes(encoder) // (4 if int8 else 1) <= table_limit:
            return TabulatedConvolution(encoder, int8)
        case ConvolutionEncoder():
            return PlainConvolution(encoder)
        case BiLSTMEncoder():
            return OnnxBiLSTM(encoder)
        case WindowedTransformer():
            return EvenWindows(encoder)
    raise ConfigError(
        f"{type(encoder).__name__} cannot be exported: expected a convolution, bilstm or transformer"
    )


class _Substitute(nn.Module):
    """Encodes documents of one length, without padding, in the place of an encoder."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(encoder).eval()

    def place(self, tokens: Tensor, states: Tensor, mask: None, idf: Tensor) -> Tensor:
        """Return document vectors (B, E), as the encoder does."""
        return self.encoder.place(tokens, states, torch.ones_like(states[..., 0], dtype=torch.bool), idf)


class RectifiedEncoder(_Substitute):
    """An encoder whose states are sums that a ReLU rectifies; most of them are zero after training."""

    scale: Tensor  # (H,) what sums are multiplied by

    def sums(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to sums (B, l, H)."""
        raise NotImplementedError

    def states(self, sums: Tensor) -> Tensor:
        """Return the states (B, l, H) of sums (B, l, H)."""
        return torch.relu(sums.float() * self.scale)

    def forward(self, tokens: Tensor) -> tuple[Tensor, None]:
        """Map token ids (B, l) to states (B, l, H)."""
        return self.states(self.sums(tokens)), None


class TabulatedConvolution(RectifiedEncoder):
    """A convolution as sums of table rows.

    Args:
        encoder: The encoder.
        int8: Whether the table has 8 bits.
    """

    encoder: ConvolutionEncoder

    def __init__(self, encoder: ConvolutionEncoder, int8: bool = False) -> None:
        super().__init__(encoder)
        self.table = ConvolutionTable(encoder, int8)
        self.scale = self.table.scale

    def sums(self, tokens: Tensor) -> Tensor:
        """Return the sums (B, l, H) of table rows."""
        return self.table(tokens)


class PlainConvolution(RectifiedEncoder):
    """A convolution without a mask.

    Args:
        encoder: The encoder.
    """

    encoder: ConvolutionEncoder

    def __init__(self, encoder: ConvolutionEncoder) -> None:
        super().__init__(encoder)
        self.scale = torch.ones(encoder.state_size)

    def sums(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, l) to states (B, l, H), which are rectified already."""
        words, mask = self.encoder.embedding(tokens)  # (B, l, v)
        return self.encoder.read(words, mask)

    def states(self, sums: Tensor) -> Tensor:
        """Return the states (B, l, H) themselves."""
        return sums


class OnnxBiLSTM(_Substitute):
    """A bidirectional LSTM as ONNX's operator.

    torch's own would be exported step by step, for one length only. Outside of an export the encoder reads.
    """

    encoder: BiLSTMEncoder

    def forward(self, tokens: Tensor) -> tuple[Tensor, None]:
        """Map token ids (B, l) to states (B, l, H)."""
        if not torch.compiler.is_exporting():
            return self.encoder(tokens)[0], None
        states = self.encoder.embedding(tokens)[0].transpose(0, 1)  # (l, B, v)
        for layer in range(self.encoder.lstm.num_layers):
            states = self._layer(states, layer)  # (l, B, H)
        return states.transpose(0, 1), None

    def _layer(self, states: Tensor, layer: int) -> Tensor:
        """Map states (l, B, v) to (l, B, H)."""
        lstm = self.encoder.lstm
        weights = [_both_directions(lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh")]
        biases = [_both_directions(lstm, f"{name}_l{layer}") for name in ("bias_ih", "bias_hh")]
        found = torch.onnx.ops.symbolic(
            "LSTM",
            (states, *weights, torch.cat(biases, dim=1)),
            {"hidden_size": lstm.hidden_size, "direction": "bidirectional"},
            dtype=states.dtype,
            shape=(states.shape[0], 2, states.shape[1], lstm.hidden_size),
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


class EvenWindows(_Substitute):
    """A transformer over windows, whose number and width follow from the documents' length."""

    encoder: WindowedTransformer

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Map token ids (B, l) to states (B, L, h), zero at padding, and the mask (B, L) of real ones."""
        most, stride, width = self.encoder.window - MARKS, self.encoder.stride, tokens.shape[1]
        # Sizes of arrays: the exporter cannot multiply them with arrays, for which `length` is one, too.
        text_size = torch.sym_max(width - MARKS, 0)  # tokens between the marks
        count_size = 1 + _up(torch.sym_max(text_size - most, 0), stride or most)  # K
        longest_size = torch.sym_min(text_size, most if stride else _up(text_size, count_size))
        length = torch.ones_like(tokens[0]).sum()  # ()
        text = (length - MARKS).clamp(min=0)
        count = 1 + _up((text - most).clamp(min=0), stride or most)
        step = _up(text, count) if stride is None else torch.full_like(count, stride)
        longest = step if stride is None else torch.full_like(count, most)
        start = torch.arange(count_size, device=tokens.device).unsqueeze(1) * step  # (K, 1) in the text
        sizes = torch.minimum(text - start, longest)  # (K, 1) tokens of the text in each window
        column = torch.arange(torch.sym_min(longest_size + MARKS, width), device=tokens.device)  # (w,)
        mask = column < torch.minimum(sizes + MARKS, length)  # (K, w)
        inside = (column > 0) & (column <= sizes)
        source = torch.where(inside, start + column, (length - 1) * (column > 0).long())  # (K, w) in the row
        cut = tokens[:, source].masked_fill(~mask, self.encoder.encoder.padding_id)  # (B, K, w)
        documents = tokens.shape[0]  # `len` would fix it in the export
        rows = mask.unsqueeze(0).expand(documents, -1, -1)  # (B, K, w)
        states = self.encoder.encoder.read(cut.flatten(0, 1), rows.flatten(0, 1))  # (B K, w, h)
        has_text = sizes > 0  # a document without text keeps its marks
        counted = ((has_text & inside) | (~has_text & mask)).flatten().expand(documents, -1)  # (B, K w)
        return states.view(*counted.shape, -1) * counted.unsqueeze(-1), counted


def _up(total: Any, part: Any) -> Any:
    """Divide and round up."""
    return (total + part - 1) // part
