"""A graph that ONNX Runtime computes, with errors that say what is wrong. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from nlpcapsule.errors import MissingExtraError, ModelFolderError, first_line


def has_runtime() -> bool:
    """Return whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


@dataclass(frozen=True, eq=False)
class Session:
    """A graph, or a part of one, which computes in the thread that runs it."""

    runtime: Any  # ONNX Runtime's session
    shapes: Mapping[str, list[int | str]]  # of its inputs; a name stands for any size

    @classmethod
    def open(cls, path: Path, required: Set[str], optional: Set[str] = frozenset()) -> Self:
        """Open an ONNX file that has these inputs.

        Raises:
            MissingExtraError: If ONNX Runtime is not installed.
            ModelFolderError: If the file is not such a graph.
        """
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("onnxruntime", "onnx") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            runtime = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library has no base class for its errors
            problem = f"{path} is no network that ONNX Runtime can read: {first_line(error)}"
            raise ModelFolderError(problem) from None
        shapes = {each.name: each.shape for each in runtime.get_inputs()}
        if not required <= set(shapes) <= required | optional:
            others = f" and, optionally, {', '.join(sorted(optional))}" if optional else ""
            raise ModelFolderError(
                f"{path} has the inputs {sorted(shapes)}: expected {', '.join(sorted(required))}{others}"
            )
        return cls(runtime, shapes)

    def run(self, output: str, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return an output; a failure is that of a damaged model."""
        try:
            return np.asarray(self.runtime.run([output], inputs)[0])
        except MemoryError:
            raise
        except Exception as error:  # the library has no base class for its errors
            raise ModelFolderError(f"the exported network failed: {first_line(error)}") from error
