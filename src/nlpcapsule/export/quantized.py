"""Quantize an exported network's products to 8 bits."""

from __future__ import annotations

import logging
from pathlib import Path


def quantize(path: Path) -> None:
    """Replace products with constant weights by products of 8-bit integers, in place.

    Activations are quantized as they are computed, with the range that they have there. Weights take 7 of
    the 8 bits: some CPUs add products in 16 bits, which more could overflow.

    Args:
        path: An ONNX file, whose file of weights is replaced, too.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(path)
    del model.graph.value_info[:]  # shapes before the exporter's optimization, which contradict later ones
    path.unlink()
    weights_of(path).unlink(missing_ok=True)
    logging.getLogger().addFilter(_is_no_advice)
    try:
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul", "Gemm", "Conv", "LSTM"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=True,
        )
    finally:
        logging.getLogger().removeFilter(_is_no_advice)


def weights_of(path: Path) -> Path:
    """Return the file of an ONNX file's weights."""
    return path.with_name(f"{path.name}.data")


def _is_no_advice(record: logging.LogRecord) -> bool:
    return not any(text in record.getMessage() for text in ("pre-processing", "already quantized"))
