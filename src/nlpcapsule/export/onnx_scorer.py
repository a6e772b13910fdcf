"""Score labels with ONNX Runtime and an exported network. Does not import torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import MissingExtraError, ModelFolderError, NlpCapsuleError, first_line
from nlpcapsule.export.sparse_network import (
    CANDIDATES,
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
    SparseNetwork,
)
from nlpcapsule.export.table_sums import TableSums
from nlpcapsule.lexical.arrays import load_arrays
from nlpcapsule.scoring.scorer import BeginScoring, Scores
from nlpcapsule.threads import thread_count

T = TypeVar("T")


def has_runtime() -> bool:
    """Return whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


class ExportedNetwork(Protocol):
    """An exported label network, which reads a document before it scores labels."""

    def read(self, tokens: np.ndarray) -> Any:
        """Return what scores need of a document of token ids (l,)."""

    def score(self, read: Any, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for a document that was read."""


@dataclass(frozen=True, eq=False)
class WholeNetwork:
    """An exported network in one part, which reads a document whenever it scores labels.

    Attributes:
        session: ONNX Runtime's session.
        takes_candidates: Whether it scores chosen labels; it scores all otherwise.
    """

    session: Any
    takes_candidates: bool = True

    def read(self, tokens: np.ndarray) -> np.ndarray:
        """Return the token ids (l,)."""
        return tokens

    def score(self, read: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the logits (C,) of labels (C,) for the token ids (l,) of a document."""
        inputs = {TOKENS: read.astype(np.int64)[None]}
        if self.takes_candidates:
            inputs[CANDIDATES] = labels.astype(np.int64)[None]
        logits = self.session.run([LOGITS], inputs)[0][0]
        return (logits if self.takes_candidates else logits[labels]).reshape(len(labels))


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """A scorer around an exported label network.

    Documents are scored one by one: larger batches would leave a core's cache, need padding, and share the
    range of 8-bit activations. Threads take documents in turn. A document that is read ahead is read in a
    thread that waits for it, so that many documents of another caller do not delay it.

    Attributes:
        exported: The network; threads may share it.
        label_count: n.
    """

    exported: ExportedNetwork
    label_count: int
    _threads_by_process: dict[int, ThreadPoolExecutor] = field(default_factory=dict, init=False, repr=False)

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
        if not path.with_name(POOLING_FILE).exists():
            session = _session(path, {TOKENS}, {CANDIDATES})
            return cls(WholeNetwork(session, CANDIDATES in _inputs(session)), label_count)
        encode: Callable[[np.ndarray], np.ndarray]
        if path.with_name(ENCODER_FILE).exists():
            encode = _encoder(_session(path.with_name(ENCODER_FILE), {TOKENS}))
        else:
            encode = _from_file(path.with_name(TABLE_FILE), TableSums.from_arrays)
        capsules = _session(path.with_name(CAPSULES_FILE), {POOLED})
        labels = _session(path.with_name(LABELS_FILE), {CAPSULES}, {LARGEST, TOKENS, CANDIDATES})
        build = partial(SparseNetwork.from_arrays, encode, capsules, labels, _inputs(labels))
        return cls(_from_file(path.with_name(POOLING_FILE), build), label_count)

    def candidates(self, tokens: Ragged) -> None:
        """Return None: the network scores all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score all labels, or the given candidates (N, C)."""
        labels = np.arange(self.label_count) if candidates is None else candidates
        log_odds = np.empty((len(tokens), labels.shape[-1]), dtype=np.float32)

        def score_document(row: int) -> None:
            own = labels if candidates is None else candidates[row]
            log_odds[row] = self._logits(self._read(tokens[row]), own)

        if (threads := min(thread_count(), len(tokens))) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(score_document, range(len(tokens))))
        else:
            for row in range(len(tokens)):
                score_document(row)
        return Scores(labels, log_odds)

    def read_ahead(self, tokens: Ragged) -> BeginScoring | None:
        """Begin to read documents in other threads, as `ReadsAhead` describes, if they are few."""
        if not 0 < len(tokens) < thread_count():
            return None
        begun = [self._submit(self._read, row) for row in tokens]

        def begin(candidates: np.ndarray) -> Callable[[], Scores]:
            # A thread that waits for a document to be read began after those that read it.
            pairs = zip(begun, candidates, strict=True)
            scoring = [self._submit(self._score_when_read, read, own) for read, own in pairs]
            return lambda: Scores(
                candidates, np.stack([each.result() for each in scoring], dtype=np.float32, casting="unsafe")
            )

        return begin

    def _submit(self, compute: Callable[..., T], *given: Any) -> Future[T]:
        """Compute something in a thread, or here if the interpreter ends and takes no more work."""
        try:
            return self._threads.submit(compute, *given)
        except RuntimeError:
            computed: Future[T] = Future()
            try:
                computed.set_result(compute(*given))
            except Exception as error:  # the caller of `result` gets it, as from a thread
                computed.set_exception(error)
            return computed

    @property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads, which wait for further documents; a forked process has none of its parent's."""
        process = os.getpid()
        if process not in self._threads_by_process:
            self._threads_by_process[process] = ThreadPoolExecutor(thread_count())
        return self._threads_by_process[process]

    def _read(self, tokens: np.ndarray) -> Any:
        return _checked(lambda: self.exported.read(tokens))

    def _score_when_read(self, read: Future[Any], labels: np.ndarray) -> np.ndarray:
        return self._logits(read.result(), labels)

    def _logits(self, read: Any, labels: np.ndarray) -> np.ndarray:
        return _checked(lambda: self.exported.score(read, labels))


def _session(path: Path, required: Set[str], optional: Set[str] = frozenset()) -> Any:
    """Return ONNX Runtime's session of a graph that has these inputs; the session has one thread."""
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
        problem = f"{path} is no network that ONNX Runtime can read: {first_line(error)}"
        raise ModelFolderError(problem) from None
    taken = _inputs(session)
    if not required <= taken <= required | optional:
        others = f", and at most {', '.join(sorted(optional))}" if optional else ""
        raise ModelFolderError(
            f"{path} takes {sorted(taken)}: expected {', '.join(sorted(required))}{others}"
        )
    return session


def _inputs(session: Any) -> frozenset[str]:
    return frozenset(each.name for each in session.get_inputs())


def _from_file(path: Path, build: Callable[[Mapping[str, Any]], T]) -> T:
    """Return what is built from a file of arrays; an error names the file and the way out."""
    arrays = load_arrays(path)
    try:
        return build(arrays)
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}; export the model again") from None


def _encoder(session: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that maps token ids (l,) to sums (l, H) with a session."""
    return lambda tokens: session.run([SUMS], {TOKENS: tokens.astype(np.int64)[None]})[0][0]


def _checked(compute: Callable[[], T]) -> T:
    """Return what a network computes; a failure of ONNX Runtime is that of a damaged model."""
    try:
        return compute()
    except (NlpCapsuleError, MemoryError):
        raise
    except Exception as error:  # the library has no base class for its errors
        raise ModelFolderError(f"the exported network failed: {first_line(error)}") from None
