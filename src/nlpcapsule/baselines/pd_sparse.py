"""PD-Sparse: a max-margin linear model that is sparse in its weights and in its dual variables.

Yen, Huang, Ravikumar, Zhong and Dhillon (2016), "PD-Sparse: a primal and dual sparse approach to extreme
multiclass and multilabel classification". Document i has words x_i, right labels P_i and wrong labels N_i;
label k has weights w_k and the score z_k = ⟨w_k, x_i⟩. One right and one wrong label make a document's loss:

    L(z, P) = max over k⁻ in N, k⁺ in P of (1 + z_k⁻ − z_k⁺)₊                         separation ranking loss
    min over W    Σ_k ½‖w_k‖² + λ‖w_k‖₁  +  C Σ_i L(Wᵀx_i, P_i)                       primal
    min over α    G(α) = ½‖W(α)‖² + Σ_i Σ_{k in N_i} α_ik                             dual
    W(α) = S_λ(Xᵀα),    S_λ(v) = sign(v) (|v| − λ)₊                                   weights from α
    α_ik ≥ 0 in P_i,   α_ik ≤ 0 in N_i,   Σ_{P_i} α_ik = −Σ_{N_i} α_ik ≤ C            for each document

The dual is solved document by document (fully-corrective block-coordinate Frank-Wolfe). A visit of document i

    1. finds the wrong label with the highest score:  k* = argmax over N_i of z_k
    2. takes as active  A = P_i ∪ {k : α_ik ≠ 0} ∪ {k*}
    3. sets α_iA to the minimum of ⟨∇_A G, a − α_iA⟩ + ½‖x_i‖² ‖a − α_iA‖²,   ∇_k G = z_k + [k in N_i],
       which is the allowed point nearest to α_iA − ∇_A G / ‖x_i‖²
    4. keeps the labels whose α_ik is not 0, and updates Xᵀα

G never increases, since ‖x_i‖² bounds its curvature. Xᵀα is stored per word, for the labels seen with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field
from scipy import sparse

from nlpcapsule.baselines.compiled import check_numba, compiled
from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.errors import ModelFolderError
from nlpcapsule.lexical.arrays import check_array, check_range, load_arrays, save_arrays, single_integer
from nlpcapsule.lexical.bag_of_words import BagOfWords
from nlpcapsule.lexical.ranker import Fitting, LexicalRanker, LexicalSettings, label_matrix
from nlpcapsule.registry import System, register


class PDSparseSettings(LexicalSettings):
    """`pd-sparse`: primal and dual sparse, max-margin (Yen et al. 2016), on tf-idf."""

    name: Literal["pd-sparse"] = "pd-sparse"
    l1: float = Field(0.1, ge=0, description="λ, the L1 penalty: larger values give fewer weights")
    C: float = Field(10.0, gt=0, description="weight of the loss; larger values regularise less")
    epochs: int = Field(20, ge=1, description="passes over the training part")


_MODEL_FILE = "pd_sparse.safetensors"
_CHUNK = 512  # documents ranked at a time, which bounds memory
_SPARE_SLOTS = 1.5  # slots of a word's table per label, which keeps probing short
_EMPTY = -1


class PDSparse(LexicalRanker):
    """One sparse weight vector per label, on tf-idf.

    Attributes:
        bag: Word weights.
        weights: (V, n) float32, W.
    """

    settings_type: ClassVar[type[PDSparseSettings]] = PDSparseSettings

    def __init__(self, bag: BagOfWords, weights: sparse.csr_matrix) -> None:
        self.bag, self.weights = bag, weights

    @classmethod
    def fit(cls, settings: PDSparseSettings, documents: EncodedDocuments, fitting: Fitting) -> Self:
        """Iterate over the documents `epochs` times, saving α after each epoch.

        Raises:
            MissingExtraError: Numba is not installed.
        """
        check_numba()
        bag = BagOfWords.fit(documents.tokens, len(fitting.words), fitting.ignored)
        rows = bag.rows(documents.tokens)  # (N, V)
        right = label_matrix(documents.labels, fitting.label_count)  # (N, n)
        kept = fitting.checkpoint / f"pd-sparse-{fitting.fingerprint(settings, documents)}.safetensors"
        done, alpha = _kept_alpha(kept, right.shape, settings.epochs)
        for number in range(done, settings.epochs):
            order = np.random.default_rng((fitting.seed, number)).permutation(len(documents))
            alpha = one_pass(rows, right, alpha, order, settings.l1, settings.C)
            save_arrays(kept, alpha=alpha, passes=np.array([number + 1]))
            fitting.advance(number + 1, settings.epochs)
        return cls(bag, weights_of(rows, alpha, settings.l1).astype(np.float32))

    def top(self, tokens: Ragged, top_k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels with the highest ⟨w_k, x⟩; all scores are 0 for a document of unknown words."""
        rows = self.bag.rows(tokens).astype(np.float64)
        width = min(top_k, self.weights.shape[1])
        labels, scores = np.zeros((len(tokens), width), dtype=np.int64), np.zeros((len(tokens), width))
        for start in range(0, len(tokens), _CHUNK):
            z = (rows[start : start + _CHUNK] @ self.weights).toarray()  # (B, n)
            best = np.argsort(-z, axis=1, kind="stable")[:, :width]
            labels[start : start + _CHUNK] = best
            scores[start : start + _CHUNK] = np.take_along_axis(z, best, axis=1)
        return labels, scores

    def save(self, folder: Path) -> None:
        """Write one file: the word weights and W."""
        save_arrays(folder / _MODEL_FILE, idf=self.bag.idf, weights=self.weights)

    @property
    def files(self) -> set[str]:
        """The name of its file."""
        return {_MODEL_FILE}

    @classmethod
    def load(cls, settings: PDSparseSettings, folder: Path) -> Self:
        """Read what `save` wrote."""
        arrays = load_arrays(folder / _MODEL_FILE)
        return cls(BagOfWords(arrays["idf"]), arrays["weights"])

    def check(self, vocabulary_size: int, label_count: int) -> None:
        """Check the shape of the weights."""
        self.bag.check(vocabulary_size)
        check_array(self.weights, "weights", (vocabulary_size, label_count))


def _kept_alpha(path: Path, shape: tuple[int, int], passes: int) -> tuple[int, sparse.csr_matrix]:
    """Return the epochs that an earlier run finished, and its α; none if the file is missing or damaged."""
    try:
        arrays = load_arrays(path, needs_checksum=True)
        done = single_integer(arrays.get("passes"), "passes")
        check_range(np.array([done]), "passes", 0, passes)
        check_array(arrays.get("alpha"), "alpha", shape)
    except ModelFolderError:
        return 0, sparse.csr_matrix(shape)
    return done, arrays["alpha"]


def weights_of(rows: sparse.csr_matrix, alpha: sparse.csr_matrix, l1: float) -> sparse.csr_matrix:
    """Return W(α) = S_λ(Xᵀα), (V, n) float64."""
    weights = (rows.T.astype(np.float64) @ alpha).tocsr()
    weights.data = np.sign(weights.data) * np.maximum(np.abs(weights.data) - l1, 0)
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights


class Rows(NamedTuple):
    """A sparse matrix for numba: row i is `ids` and `values` from starts[i] to starts[i + 1]."""

    starts: np.ndarray
    ids: np.ndarray
    values: np.ndarray


class WordTable(NamedTuple):
    """Xᵀα: word j's labels and sums, hashed by label, from starts[j] to starts[j + 1].

    A word with as many slots as there are labels is addressed directly.
    """

    starts: np.ndarray
    labels: np.ndarray
    sums: np.ndarray


def one_pass(
    rows: sparse.csr_matrix,
    right: sparse.csr_matrix,
    alpha: sparse.csr_matrix,
    order: np.ndarray,
    l1: float,
    penalty: float,
) -> sparse.csr_matrix:
    """Visit each document once.

    Xᵀα is recomputed, so that a pass depends only on its arguments.

    Args:
        rows: (N, V) float32, X.
        right: (N, n), not 0 where a label is right.
        alpha: (N, n) float64, α before the pass.
        order: (N,) the documents in the order of their visits.
        l1: λ.
        penalty: C.

    Returns:
        α after the pass, without zeros.
    """
    x, y, a = (Rows(matrix.indptr, matrix.indices, matrix.data) for matrix in (rows, right, alpha))
    by_word = rows.tocsc()
    met = labels_met(by_word.indptr, by_word.indices, y, a, right.shape[1])  # (V,)
    met += np.diff(by_word.indptr)  # each visit activates at most one more label
    slots = np.minimum(np.ceil(_SPARE_SLOTS * met).astype(np.int64), right.shape[1])
    starts = np.concatenate([[0], np.cumsum(slots)])
    table = WordTable(
        starts, np.full(starts[-1], _EMPTY, dtype=np.int32), np.zeros(starts[-1], dtype=np.float32)
    )
    sum_up(x, a, table)
    room = np.diff(right.indptr) + np.diff(alpha.indptr) + 1
    after = Rows(np.concatenate([[0], np.cumsum(room)]), np.zeros(room.sum(), np.int32), np.zeros(room.sum()))
    visit_all(order, x, y, a, after, table, right.shape[1], np.float32(l1), penalty)
    result = sparse.csr_matrix((after.values, after.ids, after.starts), shape=right.shape)
    result.eliminate_zeros()
    return result


@compiled
def labels_met(starts, documents, y, a, label_count):  # type: ignore[no-untyped-def]
    """Count, for each word (V,), the labels that are right or have α ≠ 0 in documents with that word."""
    counts = np.zeros(len(starts) - 1, dtype=np.int64)
    last_word = np.full(label_count, -1)
    for word in range(len(starts) - 1):
        for i in documents[starts[word] : starts[word + 1]]:
            for labels in (y.ids[y.starts[i] : y.starts[i + 1]], a.ids[a.starts[i] : a.starts[i + 1]]):
                for label in labels:
                    if last_word[label] != word:
                        last_word[label] = word
                        counts[word] += 1
    return counts


@compiled
def add(table, word, label, amount):  # type: ignore[no-untyped-def]
    """Add to (Xᵀα)_jk."""
    start, slots = table.starts[word], table.starts[word + 1] - table.starts[word]
    slot = label % slots
    while table.labels[start + slot] != label and table.labels[start + slot] != _EMPTY:
        slot = (slot + 1) % slots
    table.labels[start + slot] = label
    table.sums[start + slot] += amount


@compiled
def sum_up(x, a, table):  # type: ignore[no-untyped-def]
    """Fill the empty table with Xᵀα."""
    for i in range(len(x.starts) - 1):
        for at in range(x.starts[i], x.starts[i + 1]):
            for place in range(a.starts[i], a.starts[i + 1]):
                add(table, x.ids[at], a.ids[place], x.values[at] * a.values[place])


@compiled
def score(words, weights, table, l1, z):  # type: ignore[no-untyped-def]
    """Set z_k = Σ_j x_j S_λ((Xᵀα)_jk) for all labels; z's last place takes what empty slots would add."""
    z[:] = 0
    for word, weight in zip(words, weights):  # noqa: B905 - numba's zip has no `strict`
        labels = table.labels[table.starts[word] : table.starts[word + 1]]
        sums = table.sums[table.starts[word] : table.starts[word + 1]]
        if len(sums) == len(z) - 1:  # addressed directly: no look-up, so several labels at a time
            for k in range(len(sums)):
                z[k] += weight * soft(sums[k], l1)
        else:
            for slot in range(len(sums)):
                z[labels[slot]] += weight * soft(sums[slot], l1)


@compiled
def soft(value, l1):  # type: ignore[no-untyped-def]
    """Return S_λ without a branch: it is the innermost step of scoring."""
    return value - min(max(value, -l1), l1)


@compiled
def visit_all(order, x, y, a, after, table, label_count, l1, penalty):  # type: ignore[no-untyped-def]
    """Run steps 1 to 4 for each document, and write the new α into `after`."""
    z, alpha = np.zeros(label_count + 1, dtype=np.float32), np.zeros(label_count)
    is_right = np.zeros(label_count, dtype=np.bool_)
    for i in order:
        words, weights = x.ids[x.starts[i] : x.starts[i + 1]], x.values[x.starts[i] : x.starts[i + 1]]
        right = y.ids[y.starts[i] : y.starts[i + 1]]
        if len(words) == 0 or len(right) == 0 or len(right) == label_count:
            continue  # it has nothing to learn from
        curvature = 0.0
        for weight in weights:
            curvature += weight * weight
        score(words, weights, table, l1, z)
        is_right[right] = True
        worst = -1
        for k in range(label_count):
            if not is_right[k] and (worst < 0 or z[k] > z[worst]):
                worst = k
        active = after.ids[after.starts[i] : after.starts[i + 1]]  # right labels, then wrong ones
        active[: len(right)] = right
        count = len(right)
        for place in range(a.starts[i], a.starts[i + 1]):
            k = a.ids[place]
            alpha[k] = a.values[place]
            if not is_right[k]:
                active[count] = k
                count += 1
        if alpha[worst] == 0:
            active[count] = worst
            count += 1
        active = active[:count]
        up, down = active[: len(right)], active[len(right) :]
        rise, fall = nearest_allowed(
            alpha[up] - z[up] / curvature, -alpha[down] + (z[down] + 1) / curvature, penalty
        )
        new = after.values[after.starts[i] : after.starts[i] + count]
        new[: len(right)], new[len(right) :] = rise, -fall
        for k, value in zip(active, new):  # noqa: B905
            if value != alpha[k]:
                for word, weight in zip(words, weights):  # noqa: B905
                    add(table, word, k, weight * (value - alpha[k]))
            alpha[k] = 0
        is_right[right] = False


@compiled
def nearest_allowed(b, c, penalty):  # type: ignore[no-untyped-def]
    """Return the u, v ≥ 0 with Σu = Σv ≤ C that are nearest to b, c.

    While C does not bind, u = (b − m)₊ and v = (c + m)₊ with the m at which both sums are equal. Their
    difference falls with m and is linear between the b_k and the −c_k, so the root is found exactly.
    """
    if b.max() + c.max() <= 0:
        return np.zeros(len(b)), np.zeros(len(c))
    bends = np.sort(np.concatenate((b, -c)))
    low, high = 0, len(bends) - 1  # the difference is ≥ 0 at the lowest bend and ≤ 0 at the highest
    while high - low > 1:
        middle = (low + high) // 2
        if difference(b, c, bends[middle]) >= 0:
            low = middle
        else:
            high = middle
    above, below = difference(b, c, bends[low]), difference(b, c, bends[high])
    m = bends[low]
    if above > below:
        m += (bends[high] - bends[low]) * above / (above - below)
    u = np.maximum(b - m, 0)
    if u.sum() <= penalty:
        return u, np.maximum(c + m, 0)
    return nearest_with_sum(b, penalty), nearest_with_sum(c, penalty)


@compiled
def difference(b, c, m):  # type: ignore[no-untyped-def]
    """Return Σ(b − m)₊ − Σ(c + m)₊."""
    return np.maximum(b - m, 0).sum() - np.maximum(c + m, 0).sum()


@compiled
def nearest_with_sum(b, total):  # type: ignore[no-untyped-def]
    """Return the u ≥ 0 with Σu = total that is nearest to b: (b − m)₊, m from the b_k above it."""
    largest_first = -np.sort(-b)
    running, m = 0.0, 0.0
    for count, value in enumerate(largest_first):
        running += value
        if value > (running - total) / (count + 1):
            m = (running - total) / (count + 1)
    return np.maximum(b - m, 0)


register(
    System(
        "pd-sparse",
        PDSparseSettings,
        lexical=PDSparse,
        defaults={"labels": {"text": {"max_tokens": 1000}}},
        extra="trees",
    )
)
