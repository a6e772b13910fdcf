"""Score labels with ONNX Runtime and an exported network. Does not import torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, ModelFolderError
from nlpcapsule.export.sparse_network import (
    CANDIDATES,
    CAPSULES,
    CAPSULES_FILE,
    ENCODER_FILE,
    LABELS_FILE,
    LARGEST,
    LOGITS,
    PLACES,
    POOLED,
    POOLING_FILE,
    TOKENS,
    SparseNetwork,
)
from nlpcapsule.lexical.arrays import check_range, load_arrays, single_integer
from nlpcapsule.scoring.scorer import BeginScoring, Scores
from nlpcapsule.threads import thread_count

T = TypeVar("T")

_MOST_WORDS = 2**31


def has_runtime() -> bool:
    """Return whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


class ExportedNetwork(Protocol):
    """An exported label network, which reads a document before it scores labels."""

    def read(self, tokens: np.ndarray) -> Any:
        """Return what scores need of a document of token ids (l,)."""

    def read_in_threads(self, tokens: np.ndarray, threads: ThreadPoolExecutor) -> Future[Any]:
        """Begin the same; the caller's thread may do a part of it."""

    def score(self, read: Any, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for a document that was read."""


@dataclass(frozen=True, eq=False)
class WholeNetwork:
    """An exported network in one part, which reads a document whenever it scores labels.

    Attributes:
        session: ONNX Runtime's session.
    """

    session: Any

    def read(self, tokens: np.ndarray) -> np.ndarray:
        """Return the token ids (l,)."""
        return tokens

    def read_in_threads(self, tokens: np.ndarray, threads: ThreadPoolExecutor) -> Future[np.ndarray]:
        """Return the token ids (l,)."""
        return threads.submit(self.read, tokens)

    def score(self, read: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for the token ids (l,) of a document."""
        inputs = {TOKENS: read.astype(np.int64)[None]}
        scores_all = len(self.session.get_inputs()) == 1
        if not scores_all:
            inputs[CANDIDATES] = labels.astype(np.int64)[None]
        logits = self.session.run([LOGITS], inputs)[0][0]
        return (logits[labels] if scores_all else logits).reshape(len(labels))


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """A scorer around an exported label network.

    Documents are scored one by one: larger batches would leave a core's cache, need padding, and share the
    range of 8-bit activations. Threads take documents in turn; a document that is read ahead has several.

    Attributes:
        exported: The network; threads may share it.
        label_count: n.
    """

    exported: ExportedNetwork
    label_count: int
    _threads_by_process: dict[int, ThreadPoolExecutor] = field(default_factory=dict, repr=False)

    batch: ClassVar[int] = 64  # documents whose scores of all labels are in memory at once

    @property
    def network(self) -> None:
        """None: there is no network of torch."""
        return None

    @classmethod
    def load(cls, path: Path, label_count: int) -> OnnxScorer:
        """Open an exported network, in parts if there are some.

        Args:
            path: The ONNX file, whose weights and parts lie in the same folder.
            label_count: n.

        Raises:
            MissingExtraError: If ONNX Runtime is not installed.
            ModelFolderError: If a file is not such a network.
        """
        if not path.with_name(ENCODER_FILE).exists():
            return cls(WholeNetwork(_session(path, {TOKENS, CANDIDATES})), label_count)
        encoder = _session(path.with_name(ENCODER_FILE), {TOKENS}, prefix=PLACES)
        capsules = _session(path.with_name(CAPSULES_FILE), {POOLED})
        labels = _session(path.with_name(LABELS_FILE), {CAPSULES, LARGEST, TOKENS, CANDIDATES})
        arrays = load_arrays(path.with_name(POOLING_FILE))
        if set(arrays) != {"query", "scale", "padding_id"}:
            problem = f"{path.with_name(POOLING_FILE)} has {sorted(arrays)}"
            raise ModelFolderError(f"{problem}: expected query, scale and padding_id")
        padding_id = single_integer(arrays["padding_id"], "padding_id")
        check_range(np.array([padding_id]), "padding_id", 0, _MOST_WORDS)
        query, scale = arrays["query"], arrays["scale"]
        network = SparseNetwork(encoder, capsules, labels, query, scale, padding_id)
        return cls(network, label_count)

    def candidates(self, tokens: Ragged) -> None:
        """Return None: the network scores all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score all labels, or the given candidates (N, C)."""
        labels = np.arange(self.label_count) if candidates is None else candidates
        log_odds = np.empty((len(tokens), labels.shape[-1]), dtype=np.float32)

        def score_document(row: int) -> None:
            own = labels if candidates is None else candidates[row]
            log_odds[row] = self._logits(self._read(tokens[row]), own)

        if min(thread_count(), len(tokens)) > 1:
            list(self._threads.map(score_document, range(len(tokens))))
        else:
            for row in range(len(tokens)):
                score_document(row)
        return Scores(labels, log_odds)

    def read_ahead(self, tokens: Ragged) -> BeginScoring | None:
        """Begin to read documents in other threads, as `ReadsAhead` describes, if they are few."""
        if not 0 < len(tokens) < thread_count():
            return None
        begun = [self._begin_reading(row) for row in tokens]

        def begin(candidates: np.ndarray) -> Callable[[], Scores]:
            # A thread that waits for a document to be read began after those that read it.
            pairs = zip(begun, candidates, strict=True)
            scoring = [self._threads.submit(self._score_when_read, read, own) for read, own in pairs]
            return lambda: Scores(
                candidates,
                np.stack([_checked(each.result) for each in scoring], dtype=np.float32, casting="unsafe"),
            )

        return begin

    @property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads, which wait for further documents; a forked process has none of its parent's."""
        process = os.getpid()
        if process not in self._threads_by_process:
            self._threads_by_process[process] = ThreadPoolExecutor(thread_count())
        return self._threads_by_process[process]

    def _begin_reading(self, tokens: np.ndarray) -> Future[Any]:
        return _checked(lambda: self.exported.read_in_threads(tokens, self._threads))

    def _read(self, tokens: np.ndarray) -> Any:
        return _checked(lambda: self.exported.read(tokens))

    def _score_when_read(self, read: Future[Any], labels: np.ndarray) -> np.ndarray:
        return self.exported.score(read.result(), labels)

    def _logits(self, read: Any, labels: np.ndarray) -> np.ndarray:
        return _checked(lambda: self.exported.score(read, labels))


def _session(path: Path, inputs: set[str], prefix: str | None = None) -> Any:
    """Return ONNX Runtime's session of a graph: one thread, no inputs but these or with such a prefix."""
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
    taken = {each.name for each in session.get_inputs()}
    if not taken or any(name not in inputs and not (prefix and name.startswith(prefix)) for name in taken):
        raise ModelFolderError(f"{path} takes {sorted(taken)}: expected {', '.join(sorted(inputs))}")
    return session


def _checked(compute: Callable[[], T]) -> T:
    """Return what a network computes; any failure is that of a damaged model."""
    try:
        return compute()
    except Exception as error:  # the library has no base class for its errors
        raise ModelFolderError(f"the exported network failed: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:300]
