"""Cut an exported network where its states are pooled, so that zeros among them can be left out.

table.safetensors     the table whose rows are summed to states, which network.onnx reads from here, too;
                      or, without a table, encoder.onnx: tokens → states
pooling.safetensors   the queries that pool the states, and the scale of the sums
capsules.onnx         pooled states → condensed capsules
labels.onnx           capsules, the maximum of the states, and candidates → logits

The parts use the weights of the whole network, network.onnx.data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nlpcapsule.export.convolution_table import ConvolutionTable
from nlpcapsule.export.exportable import ExportableNetwork, RectifiedEncoder, TabulatedConvolution
from nlpcapsule.export.quantized import weights_of
from nlpcapsule.export.sparse_network import (
    CAPSULES,
    CAPSULES_FILE,
    ENCODER_FILE,
    LABELS_FILE,
    LARGEST,
    LOGITS,
    POOLED,
    POOLING_FILE,
    SUMS,
    TABLE_FILE,
    TOKENS,
)
from nlpcapsule.export.table_sums import TableSums
from nlpcapsule.lexical.arrays import array_places, save_arrays
from nlpcapsule.networks.label_query import LabelQueryNetwork

_SMALL = 2**8  # bytes of weights that stay in the graph


class NetworkWithCuts(nn.Module):
    """A label network whose outputs are its logits and the values at which it is cut.

    Args:
        exportable: The network; `can_be_cut` is true of it.
    """

    def __init__(self, exportable: ExportableNetwork) -> None:
        super().__init__()
        assert isinstance(exportable.network, LabelQueryNetwork)
        self.network = exportable.network

    def values(self, tokens: Tensor, candidates: Tensor | None = None) -> dict[str, Tensor]:
        """Return the logits (B, C), and the values that `SparseNetwork` computes or passes on, by name."""
        network, encoder = self.network, self.network.document.encoder
        assert isinstance(encoder, RectifiedEncoder)
        sums = encoder.sums(tokens)  # (B, l, H)
        states = encoder.states(sums)  # (B, l, H)
        pooled = network.document.pool(states, None)  # (B, m, H)
        capsules = network.document.capsules_of(pooled)  # (B, m, d)
        real = torch.ones_like(tokens, dtype=torch.bool)  # there is no padding
        reading = network.reading_of(tokens, states, real, capsules, None)
        values = {LOGITS: network.score(reading, candidates).logits, SUMS: sums, POOLED: pooled}
        values[CAPSULES] = capsules
        if reading.largest is not None:
            values[LARGEST] = reading.largest  # (B, H)
        return values

    def forward(self, tokens: Tensor, candidates: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return `values` without their names."""
        return tuple(self.values(tokens, candidates).values())


def can_be_cut(exportable: ExportableNetwork) -> bool:
    """Return whether a network pools rectified states."""
    network = exportable.network
    return (
        isinstance(network, LabelQueryNetwork)
        and isinstance(network.document.encoder, RectifiedEncoder)
        and network.document.compress_query is not None
    )


def write_parts(exportable: ExportableNetwork, graph: Path) -> None:
    """Write the parts of an exported network next to its graph, which keeps only its logits as output.

    Args:
        exportable: The network.
        graph: The ONNX file of `NetworkWithCuts`.
    """
    import onnx

    assert isinstance(exportable.network, LabelQueryNetwork)
    document = exportable.network.document
    encoder, query = document.encoder, document.compress_query
    assert isinstance(encoder, RectifiedEncoder)
    assert query is not None
    if isinstance(encoder, TabulatedConvolution):
        _move_table(encoder.table, graph)
    model = onnx.load(graph, load_external_data=False)  # the parts refer to the same files of weights
    given, outputs = ([each.name for each in ends] for ends in (model.graph.input, model.graph.output))
    if not isinstance(encoder, TabulatedConvolution):
        onnx.save(_part(model, [TOKENS], SUMS), graph.with_name(ENCODER_FILE))
    onnx.save(_part(model, [POOLED], CAPSULES), graph.with_name(CAPSULES_FILE))
    cuts = [name for name in (CAPSULES, LARGEST) if name in outputs]
    onnx.save(_part(model, [*given, *cuts], LOGITS), graph.with_name(LABELS_FILE))
    onnx.save(_part(model, given, LOGITS), graph)
    save_arrays(
        graph.with_name(POOLING_FILE),
        query=query.detach().T.contiguous().numpy(),  # (H, m)
        scale=encoder.scale.numpy(),  # (H,)
    )


def _move_table(table: ConvolutionTable, graph: Path) -> None:
    """Move the table of a graph into a file of its own, from which numpy and ONNX Runtime read it."""
    import onnx
    from onnx.external_data_helper import set_external_data

    array, file = table.table.numpy(), graph.with_name(TABLE_FILE)
    save_arrays(file, **TableSums(array, np.array(table.windows), table.padding_id).to_arrays())
    model = onnx.load(graph)
    (stored,) = (each for each in model.graph.initializer if each.name.endswith("encoder.table.table"))
    stored.raw_data = b" "  # without data it cannot refer to the file
    set_external_data(stored, file.name, array_places(file)["table"], array.nbytes)
    stored.ClearField("raw_data")
    weights = weights_of(graph)
    weights.unlink(missing_ok=True)
    onnx.save(model, graph, save_as_external_data=True, location=weights.name, size_threshold=_SMALL)


def _part(model: Any, inputs: Sequence[str], output: str) -> Any:
    """Return the part of a model from some of its values to another, without inputs that it does not need."""
    from onnx.utils import Extractor

    part = Extractor(model).extract_model(list(inputs), [output])
    used = {name for node in part.graph.node for name in node.input}
    for each in [each for each in part.graph.input if each.name not in used]:
        part.graph.input.remove(each)
    return part
