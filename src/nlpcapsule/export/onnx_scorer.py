"""Score labels with ONNX Runtime and an exported network. Does not import torch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, ModelFolderError
from nlpcapsule.scoring.scorer import Scores
from nlpcapsule.threads import thread_count


def has_runtime() -> bool:
    """Return whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """A scorer around an exported label network.

    Documents are scored one by one: larger batches would leave a core's cache, need padding, and share the
    range of 8-bit activations. Threads take documents in turn and never wait for each other.

    Attributes:
        session: ONNX Runtime's session; threads may share it.
        label_count: n.
    """

    session: Any
    label_count: int

    batch: ClassVar[int] = 64  # documents whose scores of all labels are in memory at once

    @property
    def network(self) -> None:
        """None: there is no network of torch."""
        return None

    @cached_property
    def _scores_all(self) -> bool:
        """Whether the network has no input of candidates."""
        return len(self.session.get_inputs()) == 1

    @classmethod
    def load(cls, path: Path, label_count: int) -> OnnxScorer:
        """Open an exported network.

        Args:
            path: The ONNX file, whose weights lie in the same folder.
            label_count: n.

        Raises:
            MissingExtraError: If ONNX Runtime is not installed.
            ModelFolderError: If the file is not such a network.
        """
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("onnxruntime", "onnx") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library has no base class for its errors
            problem = f"{path} is no network that ONNX Runtime can read: {_first_line(error)}"
            raise ModelFolderError(problem) from None
        inputs = {each.name for each in session.get_inputs()}
        if inputs not in ({"tokens"}, {"tokens", "candidates"}):
            raise ModelFolderError(f"{path} takes {sorted(inputs)}: expected tokens, and candidates")
        return cls(session, label_count)

    def candidates(self, tokens: Ragged) -> None:
        """Return None: the network scores all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score all labels, or the given candidates (N, C)."""
        labels = np.arange(self.label_count) if candidates is None else candidates
        log_odds = np.empty((len(tokens), labels.shape[-1]), dtype=np.float32)

        def score_document(row: int) -> None:
            log_odds[row] = self._logits(tokens[row], labels if candidates is None else candidates[row])

        workers = min(thread_count(), len(tokens))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(score_document, range(len(tokens))))
        else:
            for row in range(len(tokens)):
                score_document(row)
        return Scores(labels, log_odds)

    def _logits(self, tokens: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for the token ids (l,) of a document."""
        inputs = {"tokens": tokens.astype(np.int64)[None]}
        scores_all = self._scores_all
        if not scores_all:
            inputs["candidates"] = labels.astype(np.int64)[None]
        try:
            logits = self.session.run(["logits"], inputs)[0][0]
            return (logits[labels] if scores_all else logits).reshape(len(labels))
        except Exception as error:  # the library has no base class for its errors
            raise ModelFolderError(f"the exported network failed: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:300]
