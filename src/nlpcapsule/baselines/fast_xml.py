"""FastXML: a forest whose nodes split documents so that each side's labels rank well.

Prabhu & Varma (KDD 2014), "FastXML: a fast, accurate and stable tree-classifier for extreme multi-label
learning". `fast_xml_node` splits the documents of a node. A leaf keeps the share of its documents that have
each label; trees are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy import sparse

from nlpcapsule.baselines.compiled import check_numba, compiled
from nlpcapsule.baselines.fast_xml_node import entries_of, part
from nlpcapsule.baselines.l1_logistic import Entries
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array, check_range, load_arrays, save_arrays
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker, LexicalSettings, label_matrix
from nlpcapsule.registry import System, register


class FastXMLSettings(LexicalSettings):
    """`fast-xml`: trees whose splits maximise nDCG (Prabhu & Varma 2014), on tf-idf."""

    largest_leaf: ClassVar[int] = 10  # a node with this many documents or fewer is a leaf
    kept_labels: ClassVar[int] = 100  # most frequent labels that a leaf keeps
    C: ClassVar[float] = 4.0  # weight of a node's logistic loss: larger values give denser nodes
    bias: ClassVar[float] = 1.0  # a constant feature's value; 0 disables it

    name: Literal["fast-xml"] = "fast-xml"
    trees: int = Field(50, ge=1, description="trees whose leaves are averaged")


SMALLEST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class Forest:
    """Trees with concatenated nodes.

    Attributes:
        roots: (T,) int32, the first node of each tree.
        children: (nodes, 2) int32, where documents with wᵀx ≤ 0 and wᵀx > 0 go; −1 in a leaf.
        weights: (nodes, V + 1) float32, w of each node, the constant feature's last; empty in a leaf.
        shares: (nodes, n) float32, the share of a leaf's documents that have a label; empty in other nodes.
    """

    roots: np.ndarray
    children: np.ndarray
    weights: sparse.csr_matrix
    shares: sparse.csr_matrix

    @classmethod
    def join(cls, forests: Sequence[Forest]) -> Forest:
        """Concatenate trees to one forest, in order."""
        begins = np.cumsum([0] + [len(forest.children) for forest in forests])[:-1]
        children = [
            np.where(forest.children < 0, -1, forest.children + begin)
            for begin, forest in zip(begins, forests, strict=True)
        ]
        roots = [forest.roots + begin for begin, forest in zip(begins, forests, strict=True)]
        return cls(
            np.concatenate(roots).astype(np.int32),
            np.concatenate(children).astype(np.int32),
            sparse.vstack([forest.weights for forest in forests], format="csr"),
            sparse.vstack([forest.shares for forest in forests], format="csr"),
        )

    def check(self, tree_count: int, width: int, label_count: int) -> None:
        """Reject trees of other sizes, or in which a path does not end.

        Args:
            tree_count: T.
            width: V + 1.
            label_count: n.

        Raises:
            ModelFolderError: If they are rejected.
        """
        nodes = len(self.children)
        check_array(self.roots, "roots", (tree_count,), "i")
        check_range(self.roots, "roots", 0, nodes - 1)
        check_array(self.children, "children", (nodes, 2), "i")
        is_leaf = (self.children == -1).all(axis=1)
        behind = (self.children > np.arange(nodes)[:, None]).all(axis=1)  # so that no path comes back
        if not (is_leaf | behind).all() or self.children.max(initial=-1) >= nodes:
            raise ModelFolderError("a node of a tree has no such child")
        check_array(self.weights, "weights", (nodes, width))
        check_array(self.shares, "shares", (nodes, label_count))
        check_range(self.shares.data, "shares", 0, 1)


class FastXML(LexicalRanker):
    """A fitted forest and its word weights."""

    file: ClassVar[str] = "fast_xml.safetensors"

    def __init__(self, settings: FastXMLSettings, words: BagOfWords, forest: Forest) -> None:
        self.settings, self.words, self.forest = settings, words, forest

    @classmethod
    def fit(cls, settings: FastXMLSettings, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Grow tree after tree, reusing those in the checkpoint folder."""
        check_numba()
        words = BagOfWords.fit(documents.tokens, len(fitting.words), fitting.ignored)
        features = _with_constant(words.rows(documents.tokens), settings.bias)  # (N, V + 1)
        labels = label_matrix(documents.labels, fitting.label_count)  # (N, n)
        folder = fitting.checkpoint / f"fast-xml-{fitting.fingerprint(settings, documents)}"
        trees = []
        for tree in range(settings.trees):
            path = folder / f"tree-{tree:04d}.safetensors"
            grown = _kept_tree(path, features.shape[1], fitting.label_count)
            if grown is None:
                grown = grow_tree(features, labels, settings, np.random.default_rng([fitting.seed, tree]))
                save_arrays(path, **vars(grown))
            trees.append(grown)
            fitting.advance(tree + 1, settings.trees)
        return cls(settings, words, Forest.join(trees))

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Rank labels by their mean share over the trees; labels in no reached leaf come last, by id."""
        check_numba()
        features = _with_constant(self.words.rows(tokens), self.settings.bias)
        forest, label_count = self.forest, self.forest.shares.shape[1]
        ids, probabilities = _rank(
            entries_of(features),
            features.shape[1],
            forest.roots,
            forest.children,
            entries_of(forest.weights),
            entries_of(forest.shares),
            label_count,
            min(top_k, label_count),
        )
        probabilities = probabilities.clip(SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        return ids, np.log(probabilities) - np.log1p(-probabilities)

    def save(self, folder: Path) -> None:
        """Write one file."""
        save_arrays(folder / self.file, idf=self.words.idf, **vars(self.forest))

    @classmethod
    def load(cls, settings: FastXMLSettings, folder: Path) -> Self:
        """Read what `save` wrote."""
        arrays = load_arrays(folder / cls.file)
        return cls(settings, BagOfWords(arrays.pop("idf")), Forest(**arrays))

    def check(self, vocabulary_size: int, label_count: int) -> None:
        """Reject a forest in which a document would not reach a leaf."""
        self.words.check(vocabulary_size)
        self.forest.check(self.settings.trees, vocabulary_size + 1, label_count)


def _kept_tree(path: Path, width: int, label_count: int) -> Forest | None:
    """Return a tree that an earlier run grew; None where it is missing or damaged."""
    try:
        tree = Forest(**load_arrays(path, needs_checksum=True))
        tree.check(1, width, label_count)
    except (ModelFolderError, TypeError):
        return None
    return tree


def grow_tree(
    features: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    settings: FastXMLSettings,
    random: np.random.Generator,
) -> Forest:
    """Grow one tree: split nodes until they are small or cannot be split."""
    nothing = (np.zeros(0, dtype=np.int64), np.zeros(0))
    children, weights, shares = [[-1, -1]], [nothing], [nothing]
    pending = [(0, np.arange(features.shape[0]))]
    while pending:
        node, rows = pending.pop()
        parted = part(features, labels, rows, settings, random) if len(rows) > settings.largest_leaf else None
        if parted is None:
            shares[node] = _label_shares(labels[rows], settings.kept_labels)
            continue
        columns, values, right = parted
        weights[node] = (columns, values)
        for side, members in enumerate((rows[~right], rows[right])):
            children[node][side] = len(children)
            pending.append((len(children), members))
            children.append([-1, -1])
            weights.append(nothing)
            shares.append(nothing)
    return Forest(
        np.zeros(1, dtype=np.int32),
        np.array(children, dtype=np.int32),
        _stacked(weights, features.shape[1]),
        _stacked(shares, labels.shape[1]),
    )


@compiled
def _rank(
    features: Entries,
    width: int,
    roots: np.ndarray,
    children: np.ndarray,
    weights: Entries,
    shares: Entries,
    label_count: int,
    top_k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return label ids (N, K), best first, and their mean shares (N, K), document by document."""
    indptr, indices, data = features
    weight_starts, weight_columns, weight_values = weights
    share_starts, share_labels, share_values = shares
    ids = np.empty((len(indptr) - 1, top_k), dtype=np.int64)
    means = np.zeros((len(indptr) - 1, top_k))
    x = np.zeros(width)
    total = np.zeros(label_count)
    for i in range(len(ids)):
        row = slice(indptr[i], indptr[i + 1])
        x[indices[row]] = data[row]
        for root in roots:
            node = root
            while children[node, 0] >= 0:
                margin = 0.0
                for entry in range(weight_starts[node], weight_starts[node + 1]):
                    margin += weight_values[entry] * x[weight_columns[entry]]
                node = children[node, 1 if margin > 0 else 0]
            for entry in range(share_starts[node], share_starts[node + 1]):
                total[share_labels[entry]] += share_values[entry]
        reached = np.flatnonzero(total)
        best = reached[np.argsort(-total[reached], kind="mergesort")][:top_k]  # stable: ties are broken by id
        ids[i, : len(best)] = best
        means[i, : len(best)] = total[best] / len(roots)
        filled, label = len(best), 0
        while filled < top_k:
            if total[label] == 0:
                ids[i, filled] = label
                filled += 1
            label += 1
        x[indices[row]] = 0
        total[reached] = 0
    return ids, means


def _label_shares(labels: sparse.csr_matrix, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a leaf's most frequent labels, ascending, and the share of its documents that have each."""
    seen, counts = np.unique(labels.indices, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    return seen[kept], counts[kept] / labels.shape[0]


def _stacked(rows: list[tuple[np.ndarray, np.ndarray]], width: int) -> sparse.csr_matrix:
    """Return (len(rows), width) float32 from the columns and values of each row."""
    starts = np.cumsum([0] + [len(columns) for columns, _ in rows])
    columns = np.concatenate([columns for columns, _ in rows]).astype(np.int32)
    values = np.concatenate([values for _, values in rows]).astype(np.float32)
    return sparse.csr_matrix((values, columns, starts), shape=(len(rows), width))


def _with_constant(features: sparse.csr_matrix, bias: float) -> sparse.csr_matrix:
    """Append a constant feature: (N, V + 1)."""
    constant = sparse.csr_matrix(np.full((features.shape[0], 1), bias, dtype=np.float32))
    return sparse.hstack([features, constant], format="csr")


register(
    System(
        "fast-xml",
        FastXMLSettings,
        lexical=FastXML,
        defaults={"labels": {"text": {"max_tokens": 1000}}},
        extra="trees",
    )
)
