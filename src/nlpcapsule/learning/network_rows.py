"""Change the labels of a network: keep the rows of old labels, train those of new ones, freeze the rest."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from nlpcapsule.data.batches import batch_rows
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.top_columns import top_columns
from nlpcapsule.learning.label_changes import LabelChange
from nlpcapsule.networks.label_query import DocumentReading, LabelQueryNetwork
from nlpcapsule.networks.label_table import LabelNameTable, LabelTable, log_rarity
from nlpcapsule.networks.losses import label_loss

_SIMILAR = 8  # old labels that a new label's rows start from
_SHARPNESS = 4  # the more similar of two labels counts far more
_MOST_BYTES = 2**30  # of documents that are kept as capsules


@dataclass(frozen=True)
class RowTraining:
    """How the rows of labels are trained.

    Attributes:
        epochs: Passes over the chosen documents.
        steps: Steps at least; few documents are passed over more often.
        learning_rate: Adam's, which falls linearly to 0.
        batch_size: Documents per step.
        positives: Documents of a label at most.
        hard_negatives: Documents per label that are similar to its own and do not have it.
        random_negatives: Documents of any kind.
        seed: Chooses documents and their order.
    """

    epochs: int = 8
    steps: int = 200
    learning_rate: float = 1e-2
    batch_size: int = 32
    positives: int = 60
    hard_negatives: int = 8
    random_negatives: int = 400
    seed: int = 1


def changed_network(
    network: LabelQueryNetwork, change: LabelChange, similarity: np.ndarray
) -> LabelQueryNetwork:
    """Return a copy of a network with the rows of the changed labels.

    A new label starts from the rows of the old labels whose documents are most similar to its own; a merged
    one from the mean of its parts.

    Args:
        network: The network; not changed.
        change: The change.
        similarity: (added, n) cosine of the documents of each label of `change.added` and those of old ones.
    """
    device = next(network.parameters()).device
    single = np.array([source[0] if len(source) == 1 else -1 for source in change.sources])
    mixed = np.flatnonzero(single < 0)
    shares = torch.from_numpy(_row_shares(change, mixed, similarity).astype(np.float32)).to(device)
    kept = torch.from_numpy(single.clip(0)).to(device)
    found = copy.deepcopy(network)
    found.labels = LabelTable(len(change.labels))
    for name, rows in network.labels.named_parameters():
        old = rows.detach()
        moved = old[kept]  # exactly as they were
        moved[mixed] = (shares @ old.reshape(len(old), -1)).reshape(-1, *old.shape[1:])
        found.labels.add(name, moved)
    if network.names is not None:
        found.names = _changed_names(network.names, change)
    return found.to(device).eval()


def _row_shares(change: LabelChange, labels: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Return the share (labels, n) of each old label's rows in the first rows of new and merged labels."""
    shares = np.zeros((len(labels), similarity.shape[1]))
    row_of = {label: row for row, label in enumerate(change.added)}
    nearest = top_columns(similarity, _SIMILAR)  # (added, 8)
    for share, label in zip(shares, labels, strict=True):
        if change.sources[label]:
            share[list(change.sources[label])] = 1 / len(change.sources[label])
            continue
        row = row_of[label]
        weights = similarity[row, nearest[row]].clip(0) ** _SHARPNESS
        if weights.sum() == 0:  # no word in common with any label
            share[:] = 1 / len(share)
        else:
            share[nearest[row]] = weights / weights.sum()
    return shares


def _changed_names(names: LabelNameTable, change: LabelChange) -> LabelNameTable:
    """Keep the names of old labels; a new label's name is not known, and its vector is 0."""
    found = copy.deepcopy(names)
    vectors = names.names.new_zeros(len(change.labels), names.names.shape[1])
    for label, source in enumerate(change.sources):
        if source:
            vectors[label] = nn.functional.normalize(names.names[list(source)].mean(dim=0), dim=0)
            if len(source) == 1:
                vectors[label] = names.names[source[0]]
    counts, device = change.labels.counts, vectors.device
    found.names = vectors
    found.has_examples = torch.from_numpy(counts > 0).to(device)
    found.weight = torch.from_numpy((1 / np.sqrt(1 + counts)).astype(np.float32)).to(device)
    found.rarity = torch.tensor(log_rarity(counts), device=device)
    return found


def train_rows(
    network: LabelQueryNetwork,
    change: LabelChange,
    documents: sparse.csr_matrix,
    centroids: sparse.csr_matrix,
    padding_id: int,
    settings: RowTraining,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Train the rows of changed labels in place; all other weights stay as they are.

    Args:
        network: The network, in eval mode, with first rows.
        change: The change; trains the labels of `refit` that have documents.
        documents: (N, V) tf-idf rows, to find similar documents.
        centroids: (n', V) mean rows of the labels.
        padding_id: Id of the padding token.
        settings: How.
        advance: Called with (steps done, total steps), for progress.
    """
    labels = np.flatnonzero(change.refit & (change.labels.counts > 0))
    if not len(labels):
        return
    chosen = training_documents(change, labels, documents, centroids, settings)
    tokens = change.documents.tokens.take(chosen)
    targets = change.documents.labels[chosen][:, labels].toarray()  # (D, n'')
    tables = list(network.labels.parameters())
    required = {weight: weight.requires_grad for weight in network.parameters()}
    try:
        network.labels.sparse = True  # only the rows of these labels have gradients
        for weight in required:
            weight.requires_grad_(False)
        for table in tables:
            table.requires_grad_(True)
        readings = _Readings(network, tokens, padding_id, settings.batch_size)
        _descend(network, tables, readings, targets, labels, settings, advance)
    finally:
        network.labels.sparse = False
        for weight, was_required in required.items():
            weight.requires_grad_(was_required)


class _Readings:
    """Documents as the frozen part of a network reads them: once, if all of it fits into memory.

    Args:
        network: The network.
        tokens: The documents.
        padding_id: Id of the padding token.
        batch_size: Documents read at a time.
    """

    def __init__(self, network: LabelQueryNetwork, tokens: Ragged, padding_id: int, batch_size: int) -> None:
        self._network, self.tokens, self._padding_id = network, tokens, padding_id
        self._device = next(network.parameters()).device
        self._kept: DocumentReading | None = None
        size = 4 * len(tokens) * network.settings.condensed * network.settings.capsule_size
        if network.settings.condensed and size <= _MOST_BYTES:
            order = np.argsort(tokens.lengths, kind="stable")  # little padding
            starts = range(0, len(tokens), batch_size)
            read = _joined([self._read(order[start : start + batch_size]) for start in starts])
            self._kept = _rows(read, torch.from_numpy(np.argsort(order)).to(self._device))

    def __call__(self, rows: np.ndarray) -> DocumentReading:
        """Return some documents."""
        if self._kept is None:
            return self._read(rows)
        return _rows(self._kept, torch.from_numpy(rows).to(self._device))

    @torch.no_grad()
    def _read(self, rows: np.ndarray) -> DocumentReading:
        inputs = torch.from_numpy(self.tokens.padded(rows, self._padding_id)).to(self._device)  # (B, l)
        return self._network.read(inputs)


def _joined(parts: list[DocumentReading]) -> DocumentReading:
    """Return the documents of all parts, whose capsules are as many."""
    capsules, *others = zip(*parts, strict=True)
    more = (None if any(part is None for part in each) else torch.cat(each) for each in others)
    return DocumentReading(torch.cat(capsules), *more)


def _rows(reading: DocumentReading, rows: Tensor) -> DocumentReading:
    """Return some of the documents."""
    more = (None if part is None else part[rows] for part in reading[1:])
    return DocumentReading(reading.capsules[rows], *more)


def _descend(
    network: LabelQueryNetwork,
    tables: list[nn.Parameter],
    readings: _Readings,
    targets: np.ndarray,
    labels: np.ndarray,
    settings: RowTraining,
    advance: Callable[[int, int], None],
) -> None:
    # It leaves rows without a gradient exactly as they are.
    optimizer = torch.optim.SparseAdam(tables, lr=settings.learning_rate)
    device, lengths = tables[0].device, readings.tokens.lengths
    outputs = torch.from_numpy(labels).to(device)
    batches = len(batch_rows(lengths, settings.batch_size, settings.seed, 0))
    epochs = max(settings.epochs, math.ceil(settings.steps / batches))
    steps, done = epochs * batches, 0
    for epoch in range(epochs):
        for rows in batch_rows(lengths, settings.batch_size, settings.seed, epoch):
            scored = network.score(readings(rows), outputs)
            loss = label_loss("bce", scored.logits, torch.from_numpy(targets[rows]).to(device))
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - done / steps)
            optimizer.step()
            done += 1
            advance(done, steps)


def training_documents(
    change: LabelChange,
    labels: np.ndarray,
    documents: sparse.csr_matrix,
    centroids: sparse.csr_matrix,
    settings: RowTraining,
) -> np.ndarray:
    """Choose the documents that labels are trained on: learned ones, their own, similar and other ones.

    Args:
        change: The documents and their labels.
        labels: Label ids.
        documents: (N, V) tf-idf rows.
        centroids: (n, V) mean rows of the labels.
        settings: How many.

    Returns:
        Ascending row numbers.
    """
    generator = np.random.default_rng(settings.seed)
    by_label = change.documents.labels.tocsc()
    chosen = [change.learned, generator.permutation(documents.shape[0])[: settings.random_negatives]]
    by_word = documents.T.tocsr()
    for label in labels:
        holders = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        chosen.append(holders[-settings.positives :])  # the latest documents are the last
        cosines = (centroids[label] @ by_word).toarray()  # (1, N)
        cosines[0, holders] = -1
        chosen.append(top_columns(cosines, settings.hard_negatives)[0])
    return np.unique(np.concatenate(chosen))
