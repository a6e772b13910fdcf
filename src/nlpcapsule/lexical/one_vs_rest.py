"""One linear support vector machine per label, on tf-idf.

min over w, b of   ½ (‖w‖² + b²) + C Σ_i max(0, 1 − y_i (w · x_i + b))²,     y_i = ±1

Where there are many labels and documents, a label is trained on the documents nearest to it, its centroid is
added to its weights, and the labels whose centroids are nearest to a document are ranked.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field
from scipy import sparse

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array, load_arrays, save_arrays
from nlpcapsule.lexical.bag_of_words import LEAD_TOKENS_HELP, BagOfWords
from nlpcapsule.lexical.many_labels.inverted_index import (
    FEWEST_AT_A_TIME,
    LABELS_PER_WORD,
    InvertedIndex,
    best_of,
    row_products,
)
from nlpcapsule.lexical.many_labels.label_machines import LabelMachines
from nlpcapsule.lexical.many_labels.machine import fit_estimator
from nlpcapsule.lexical.many_labels.nearest_negatives import NearestNegatives
from nlpcapsule.lexical.many_labels.pool import in_processes
from nlpcapsule.lexical.many_labels.threaded import in_threads
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker, LexicalSettings, label_matrix, top_of_parts
from nlpcapsule.lexical.sparse_rows import DenseProducts, in_parts, stacked_rows
from nlpcapsule.registry import System, register


class OneVsRestSettings(LexicalSettings):
    """`one-vs-rest`: a linear support vector machine per label, on tf-idf."""

    name: Literal["one-vs-rest"] = "one-vs-rest"
    C: float = Field(1.0, gt=0, description="weight of the loss; larger values regularise less")
    smallest_weight: float = Field(0.01, ge=0, description="weights below this are dropped after training")
    lead_tokens: int = Field(0, ge=0, description=LEAD_TOKENS_HELP)


# Documents times labels that are all trained on: half an hour on two cores.
MOST_WORK = 250_000_000
MOST_DOCUMENTS = 100_000  # that all labels are trained on: each process holds them in memory
BLOCK = 32  # labels per checkpoint file
_LARGE_BLOCK = 1_024  # the same where a label is trained on few documents: a second or two of work
_NOMINATED = 200  # labels that are ranked, at least, where centroids nominate them
_FOR_PROCESSES, _IN_A_PROCESS = 4_096, 256  # documents that processes share, and those of a task
_SCORES_AT_A_TIME = 2**24  # scores computed at once, which bounds memory

Block: TypeAlias = tuple[sparse.csr_matrix, np.ndarray]  # weights (block, V) and bias (block,) of some labels


@dataclass(frozen=True, eq=False)
class OneVsRest(LexicalRanker):
    """A weight for every label and word."""

    file: ClassVar[str] = "one-vs-rest.safetensors"

    bag: BagOfWords  # turns tokens into features
    weights: sparse.csr_matrix  # (n, V) float32, sparse
    bias: np.ndarray  # (n,) float32
    centroids: InvertedIndex | None = None  # nominates the labels to rank; None ranks all

    @classmethod
    def fit(cls, settings: OneVsRestSettings, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Train blocks of labels on all cores, each saved in the checkpoint folder."""
        bag = BagOfWords.fit(documents.tokens, len(fitting.words), fitting.ignored, settings.lead_tokens)
        features = bag.rows(documents.tokens)  # (N, V)
        targets = label_matrix(documents.labels, fitting.label_count).tocsc()  # (N, n)
        centroids = negatives = None
        if len(documents) > MOST_DOCUMENTS or len(documents) * fitting.label_count > MOST_WORK:
            centroids = InvertedIndex.of_labels(features, targets.tocsr(), len(bag.idf))
            negatives = NearestNegatives.find(centroids, features, targets, fitting.seed)
        else:
            features = features.astype(np.float64)  # as liblinear takes it
        kind = "one-vs-rest" if negatives is None else f"one-vs-rest-nearest-{_LARGE_BLOCK}"
        folder = fitting.checkpoint / f"{kind}-{fitting.fingerprint(settings, documents)}"
        size = BLOCK if negatives is None else _LARGE_BLOCK
        starts = range(0, fitting.label_count, size)
        files = {start: folder / f"{start}.safetensors" for start in starts}
        blocks = {
            start: _kept_block(files[start], min(size, fitting.label_count - start), features.shape[1])
            for start in starts
        }
        missing = [start for start in starts if blocks[start] is None]
        done = len(starts) - len(missing)
        fitting.advance(done, len(starts))
        tasks = (
            (start, targets[:, start : start + size], negatives and negatives.part(start, start + size))
            for start in missing
        )
        for start, block in fit_blocks(features, tasks, len(missing), settings, fitting.seed):
            save_arrays(files[start], weights=block[0], bias=block[1])
            blocks[start] = block
            done += 1
            fitting.advance(done, len(starts))
        weights, bias = zip(*filter(None, blocks.values()), strict=True)
        rows = weights if centroids is None else centroids.added_to(weights, np.diff(targets.indptr))
        stacked = stacked_rows(rows, (fitting.label_count, features.shape[1]))
        return cls(bag, stacked, np.concatenate(bias), centroids)

    @cached_property
    def _margins(self) -> DenseProducts:
        return DenseProducts(self.weights)

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels of documents and their margins."""
        if self.centroids is not None:
            return self._top_nominated(tokens, top_k)
        parts = in_parts(self.bag.rows(tokens), max(1, _SCORES_AT_A_TIME // len(self.bias)))
        return top_of_parts((self._margins(part) + self.bias for _, part in parts), top_k)

    def _top_nominated(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best of the labels whose centroids are nearest."""
        assert self.centroids is not None
        self.centroids.prepare()
        best: Iterable[tuple[np.ndarray, np.ndarray]]
        if len(tokens) < _FOR_PROCESSES:
            features = self.bag.rows(tokens)  # (N, V)
            starts = range(0, len(tokens), FEWEST_AT_A_TIME) or range(1)
            best = in_threads(lambda at: self._best(features[at : at + FEWEST_AT_A_TIME], top_k), starts)
        else:
            starts = range(0, len(tokens), _IN_A_PROCESS)
            parts = (tokens.slice(at, min(at + _IN_A_PROCESS, len(tokens))) for at in starts)
            best = in_processes(_best_of_part, ((self, part, top_k) for part in parts), len(starts))
        labels, margins = (np.concatenate(column) for column in zip(*best, strict=True))
        return labels.astype(np.int64), margins

    def _best(self, features: sparse.csr_matrix, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels (N, K) int32 and their margins (N, K), from features (N, V)."""
        assert self.centroids is not None
        nominated, _ = self.centroids.nearest(features, max(top_k, _NOMINATED))
        margins = row_products(features, self.weights, nominated) + self.bias[nominated]
        return best_of(nominated, margins, top_k)

    def save(self, folder: Path) -> None:
        """Write one file."""
        more = {} if self.centroids is None else {"centroids": self.centroids.weights}
        save_arrays(folder / self.file, **self.bag.to_arrays(), weights=self.weights, bias=self.bias, **more)

    @classmethod
    def load(cls, settings: OneVsRestSettings, folder: Path) -> Self:
        """Read the output of `save`."""
        arrays = load_arrays(folder / cls.file)
        centroids = None
        if "centroids" in arrays:
            centroids = InvertedIndex(arrays["centroids"], LABELS_PER_WORD)
        return cls(BagOfWords.from_arrays(arrays), arrays["weights"], arrays["bias"], centroids)

    def check(self, vocabulary_size: int, label_count: int) -> None:
        """Check the shapes of the weights."""
        self.bag.check(vocabulary_size)
        check_array(self.weights, "weights", (label_count, self.bag.width))
        check_array(self.bias, "bias", (label_count,))
        if self.centroids is not None:
            check_array(self.centroids.weights, "centroids", (label_count, self.bag.width))


def _best_of_part(ranker: OneVsRest, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
    return ranker._best(ranker.bag.rows(tokens), top_k)


def _kept_block(path: Path, labels: int, words: int) -> Block | None:
    """Return weights and bias of a block that an earlier run saved; None if missing or damaged."""
    try:
        arrays = load_arrays(path, needs_checksum=True)
        check_array(arrays.get("weights"), "weights", (labels, words))
        check_array(arrays.get("bias"), "bias", (labels,))
    except ModelFolderError:
        return None
    return arrays["weights"], arrays["bias"]


def fit_blocks(
    features: sparse.csr_matrix,
    tasks: Iterable[tuple[int, sparse.csc_matrix, NearestNegatives | None]],
    count: int,
    settings: OneVsRestSettings,
    seed: int,
) -> Iterator[tuple[int, Block]]:
    """Return the start, weights and bias of each block as it is trained.

    Uses processes: liblinear's threads share one random generator, and the weights would differ slightly from
    run to run.
    """
    whole = ((*task, features, settings, seed) for task in tasks)
    return in_processes(_fit_block, whole, count)


def _fit_block(
    start: int,
    targets: sparse.csc_matrix,
    negatives: NearestNegatives | None,
    features: sparse.csr_matrix,
    settings: OneVsRestSettings,
    seed: int,
) -> tuple[int, Block]:
    """Return a block and its start."""
    documents, words = features.shape
    machines = None if negatives is None else LabelMachines(features, negatives)
    columns, values, bias = [], [], np.empty(targets.shape[1], dtype=np.float32)
    for label in range(targets.shape[1]):
        holders = targets.indices[targets.indptr[label] : targets.indptr[label + 1]]
        if len(holders) in (0, documents):  # a single class: only a bias is needed
            found, weights = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
            bias[label] = 1 if len(holders) else -1
        elif machines is None:
            has_label = np.zeros(documents, dtype=np.int8)
            has_label[holders] = 1
            found, weights, bias[label] = _fit_label(settings, seed, features, has_label)
        else:
            options = (settings.smallest_weight, settings.C, seed)
            found, weights, bias[label] = machines.fit(label, holders, *options)
        columns.append(found)
        values.append(weights)
    bounds = np.cumsum([0, *map(len, values)])
    arrays = (np.concatenate(values), np.concatenate(columns), bounds)
    return start, (sparse.csr_matrix(arrays, shape=(targets.shape[1], words)), bias)


def _fit_label(
    settings: OneVsRestSettings, seed: int, features: sparse.csr_matrix, has_label: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Train on rows (N, V); return words (K,), their weights (K,) float32, none near 0, and the bias."""
    found, bias = fit_estimator(features, has_label, None, settings.C, seed)
    weights = np.where(np.abs(found) < settings.smallest_weight, 0, found).astype(np.float32)
    words = np.flatnonzero(weights)
    return words, weights[words], bias


register(
    System(
        "one-vs-rest",
        OneVsRestSettings,
        lexical=OneVsRest,
        defaults={"labels": {"text": {"max_tokens": 1000}}},
    )
)
