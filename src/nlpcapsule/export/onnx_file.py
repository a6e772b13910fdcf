"""Write a label network as an ONNX file.

network.onnx        the graph
network.onnx.data   its weights, which ONNX Runtime maps into memory: only rows in use take RAM

A network that pools rectified states is also written in parts: `nlpcapsule.export.network_parts`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

from nlpcapsule.errors import MissingExtraError, NlpCapsuleError
from nlpcapsule.export.exportable import ExportableNetwork
from nlpcapsule.export.network_parts import NetworkWithCuts, can_be_cut, write_parts
from nlpcapsule.export.sparse_network import CANDIDATES, LOGITS, PARTS, TOKENS

GRAPH = "network.onnx"
WEIGHTS = f"{GRAPH}.data"
_EXAMPLE_DOCUMENTS, _EXAMPLE_LABELS = 3, 2
_EXAMPLE_TOKENS = 700  # of a short text the exporter would fix the number of pooled states


def write_onnx(network: nn.Module, folder: Path, *, candidates: bool = True, int8: bool = False) -> list[str]:
    """Export a label network into an existing folder.

    Args:
        network: A `label-query` or `paper` network, in eval mode.
        folder: The folder.
        candidates: Whether the graph takes the labels to score as an input; it scores all labels otherwise.
        int8: Whether to quantize weights to 8 bits; activations are quantized as they are computed.

    Returns:
        The names of the files.

    Raises:
        MissingExtraError: If a package that exporting needs is not installed.
        ConfigError: If the network is of a kind that cannot be exported.
    """
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "onnx", "onnx") from None
    exportable = ExportableNetwork(network, candidates, int8)
    is_cut = can_be_cut(exportable)
    with TemporaryDirectory(dir=folder, prefix=".export-") as temporary:
        graph = Path(temporary) / GRAPH
        _export(NetworkWithCuts(exportable) if is_cut else exportable, candidates, graph)
        if int8:
            from nlpcapsule.export.quantized import quantize

            quantize(graph)
        if is_cut:
            write_parts(exportable, graph)
        names, mode = sorted(path.name for path in Path(temporary).iterdir()), graph.stat().st_mode
        for name in set(PARTS).difference(names):  # of an earlier export
            (folder / name).unlink(missing_ok=True)
        for name in names:
            (Path(temporary) / name).chmod(mode)  # some libraries write files that only their owner can read
            (Path(temporary) / name).replace(folder / name)
    return names


def _export(network: ExportableNetwork | NetworkWithCuts, candidates: bool, path: Path) -> None:
    tokens = torch.ones(_EXAMPLE_DOCUMENTS, _EXAMPLE_TOKENS, dtype=torch.int64)
    documents, length = torch.export.Dim("documents"), torch.export.Dim("length")
    inputs: tuple[torch.Tensor, ...] = (tokens,)
    shapes: tuple[dict[int, object], ...] = ({0: documents, 1: length},)
    names = [TOKENS]
    if candidates:
        inputs += (torch.zeros(_EXAMPLE_DOCUMENTS, _EXAMPLE_LABELS, dtype=torch.int64),)
        shapes += ({0: documents, 1: torch.export.Dim("labels")},)
        names.append(CANDIDATES)
    with _silence(), torch.no_grad():
        # Which outputs there are follows from a forward pass.
        outputs = list(network.values(*inputs)) if isinstance(network, NetworkWithCuts) else [LOGITS]
        program = torch.onnx.export(
            network,
            inputs,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=names,
            output_names=outputs,
            verbose=False,
        )
        assert program is not None
        program.save(path, external_data=True)
    for each in program.model.graph.inputs:  # the exporter may fix a size without a word
        if any(isinstance(size, int) for size in each.shape or (0,)):
            raise NlpCapsuleError(f"the export would take {each.name} of the shape {each.shape} only")


@contextmanager
def _silence() -> Iterator[None]:
    """Silence the exporter, which reports on itself."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
