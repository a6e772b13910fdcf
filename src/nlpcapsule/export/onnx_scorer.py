"""Score labels with ONNX Runtime and an exported network. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export.session import Session
from nlpcapsule.export.sparse_network import (
    CANDIDATES,
    CAPSULES,
    CAPSULES_FILE,
    ENCODER_FILE,
    LABELS_FILE,
    LARGEST,
    POOLED,
    POOLING_FILE,
    SUMS,
    TABLE_FILE,
    TOKENS,
    SparseNetwork,
    logits_of,
)
from nlpcapsule.export.table_sums import TableSums
from nlpcapsule.lexical.arrays import load_arrays
from nlpcapsule.scoring.background import begin
from nlpcapsule.scoring.scorer import Scores
from nlpcapsule.threads import thread_count

S = TypeVar("S")
T = TypeVar("T")


class ExportedNetwork(Protocol):
    """An exported label network, which reads a document before it scores labels."""

    def read(self, tokens: np.ndarray) -> Any:
        """Return what scores need of a document of token ids (l,)."""

    def score(self, read: Any, labels: np.ndarray, label_count: int) -> np.ndarray:
        """Return the logits (C,) of labels (C,), some of n, for a document that was read."""


@dataclass(frozen=True, eq=False)
class WholeNetwork:
    """An exported network in one part, which reads a document whenever it scores labels.

    Attributes:
        session: The graph: token ids, and candidates if it takes them, → logits.
    """

    session: Session

    def read(self, tokens: np.ndarray) -> np.ndarray:
        """Return the token ids (l,)."""
        return tokens

    def score(self, read: np.ndarray, labels: np.ndarray, label_count: int) -> np.ndarray:
        """Return the logits (C,) of labels (C,), some of n, for the token ids (l,) of a document."""
        return logits_of(labels, label_count, self.session, {TOKENS: read.astype(np.int64)[None]})


@dataclass(frozen=True, eq=False)
class OnnxScorer:
    """A scorer around an exported label network.

    Documents are scored one by one: larger batches would leave a core's cache, need padding, and share the
    range of 8-bit activations. Threads take documents in turn.

    Attributes:
        exported: The network; threads may share it.
        label_count: n.
    """

    exported: ExportedNetwork
    label_count: int

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
            return cls(WholeNetwork(Session.open(path, {TOKENS}, {CANDIDATES})), label_count)
        encode: Callable[[np.ndarray], np.ndarray]
        if path.with_name(ENCODER_FILE).exists():
            encode = _encoder(Session.open(path.with_name(ENCODER_FILE), {TOKENS}))
        else:
            encode = _from_file(path.with_name(TABLE_FILE), TableSums.from_arrays)
        capsules = Session.open(path.with_name(CAPSULES_FILE), {POOLED})
        labels = Session.open(path.with_name(LABELS_FILE), {CAPSULES}, {LARGEST, TOKENS, CANDIDATES})
        build = partial(SparseNetwork.from_arrays, encode, capsules, labels)
        return cls(_from_file(path.with_name(POOLING_FILE), build), label_count)

    def check(self, word_count: int) -> None:
        """Raise `ModelFolderError` if there is a table and it has rows for more or fewer words than this."""
        encode = self.exported.encode if isinstance(self.exported, SparseNetwork) else None
        if isinstance(encode, TableSums) and encode.word_count != word_count:
            problem = f"{TABLE_FILE} has {encode.word_count:,} words, and the tokenizer {word_count:,}"
            raise ModelFolderError(f"{problem}; export the model again")

    def candidates(self, tokens: Ragged) -> None:
        """Return None: the network scores all labels."""

    def score(self, tokens: Ragged, candidates: np.ndarray | None = None, top_k: int | None = None) -> Scores:
        """Score all labels, or the given candidates (N, C)."""
        labels = np.arange(self.label_count) if candidates is None else candidates
        log_odds = np.empty((len(tokens), labels.shape[-1]), dtype=np.float32)

        def score_document(row: int) -> None:
            own = labels if candidates is None else candidates[row]
            log_odds[row] = self.exported.score(self.exported.read(tokens[row]), own, self.label_count)

        _each(score_document, range(len(tokens)))
        return Scores(labels, log_odds)

    def read(self, tokens: Ragged) -> list[Any]:
        """Return what scores need of each document."""
        return _each(self.exported.read, list(tokens))

    def score_read(self, read: Sequence[Any], candidates: np.ndarray) -> Scores:
        """Score candidates (N, C) of documents that were read."""
        log_odds = np.empty(candidates.shape, dtype=np.float32)

        def score_document(row: int) -> None:
            log_odds[row] = self.exported.score(read[row], candidates[row], self.label_count)

        _each(score_document, range(len(read)))
        return Scores(candidates, log_odds)


def _each(compute: Callable[[S], T], given: Collection[S]) -> list[T]:
    """Compute something of each, in threads if there are several."""
    if len(given) < 2 or (threads := min(thread_count(), len(given))) < 2:
        return [compute(each) for each in given]
    with ThreadPoolExecutor(threads) as pool:
        try:
            begun = [begin(pool, compute, each) for each in given]
            return [each.result() for each in begun]
        except BaseException:  # Ctrl-C, too: only what is being computed is waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _from_file(path: Path, build: Callable[[Mapping[str, Any]], T]) -> T:
    """Return what is built from a file of arrays; an error names the file and the way out."""
    arrays = load_arrays(path)
    try:
        return build(arrays)
    except ModelFolderError as error:
        raise ModelFolderError(f"{path}: {error}; export the model again") from None


def _encoder(session: Session) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that maps token ids (l,) to sums (l, H) with a session."""

    def encode(tokens: np.ndarray) -> np.ndarray:
        sums = session.run(SUMS, {TOKENS: tokens.astype(np.int64)[None]})
        if sums.ndim != 3 or len(sums) != 1:
            raise ModelFolderError(f"the exported encoder gives sums of the shape {sums.shape}")
        return sums[0]

    return encode
