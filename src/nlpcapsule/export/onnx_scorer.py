"""Score labels with ONNX Runtime and an exported network. Does not import torch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, ModelFolderError
from nlpcapsule.scoring.scorer import Scores
from nlpcapsule.threads import thread_count

# Documents per run: their states should fit into a core's cache, which larger batches leave.
BATCH = 4


def has_runtime() -> bool:
    """Return whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """A scorer around an exported label network.

    Each thread computes whole batches. Threads never wait for each other, and the number of threads does not
    change a result.

    Attributes:
        session: ONNX Runtime's session; threads may share it.
        label_count: n.
        padding_id: Id of the padding token.
        batch: Documents per run; documents of similar length go together.
    """

    session: Any
    label_count: int
    padding_id: int = 0
    batch: int = BATCH

    @property
    def network(self) -> None:
        """None: there is no network of torch."""
        return None

    @classmethod
    def load(cls, path: Path, label_count: int, padding_id: int) -> OnnxScorer:
        """Open an exported network.

        Args:
            path: The ONNX file, whose weights lie in the same folder.
            label_count: n.
            padding_id: Id of the padding token.

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
            problem = (str(error).splitlines() or [""])[0]
            raise ModelFolderError(f"{path} is no network that ONNX Runtime can read: {problem}") from None
        inputs = {each.name for each in session.get_inputs()}
        if inputs not in ({"tokens"}, {"tokens", "candidates"}):
            raise ModelFolderError(f"{path} takes {sorted(inputs)}: expected tokens, and candidates")
        return cls(session, label_count, padding_id)

    def candidates(self, tokens: Ragged) -> None:
        """Return None: the network scores all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score all labels, or the given candidates (N, C)."""
        labels = np.arange(self.label_count) if candidates is None else candidates
        log_odds = np.empty((len(tokens), labels.shape[-1]), dtype=np.float32)
        order = np.argsort(tokens.lengths, kind="stable")
        parts = [order[start : start + self.batch] for start in range(0, len(order), self.batch)]

        def score_part(rows: np.ndarray) -> None:
            asked = np.broadcast_to(labels, log_odds.shape)[rows]  # (B, C)
            log_odds[rows] = self._run(tokens.padded(rows, self.padding_id), asked)

        workers = min(thread_count(), len(parts))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(score_part, parts))
        else:
            for rows in parts:
                score_part(rows)
        return Scores(labels, log_odds)

    def _run(self, tokens: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return logits (B, C) of labels (B, C) for token ids (B, l)."""
        if len(self.session.get_inputs()) == 1:  # it scores all labels
            return np.take_along_axis(self.session.run(["logits"], {"tokens": tokens})[0], labels, axis=1)
        inputs = {"tokens": tokens, "candidates": labels.astype(np.int64)}
        return self.session.run(["logits"], inputs)[0]
