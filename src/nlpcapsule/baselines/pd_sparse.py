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

G never increases, since ‖x_i‖² bounds its curvature. `pd_sparse_solver` has the visits.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from scipy import sparse

from nlpcapsule.baselines.compiled import check_numba
from nlpcapsule.baselines.pd_sparse_solver import one_pass
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


_CHUNK = 512  # documents ranked at a time, which bounds memory


class PDSparse(LexicalRanker):
    """One sparse weight vector per label, on tf-idf.

    Attributes:
        bag: Word weights.
        weights: (V, n) float32, W.
    """

    file: ClassVar[str] = "pd_sparse.safetensors"

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
        save_arrays(folder / self.file, idf=self.bag.idf, weights=self.weights)

    @classmethod
    def load(cls, settings: PDSparseSettings, folder: Path) -> Self:
        """Read what `save` wrote."""
        arrays = load_arrays(folder / cls.file)
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


register(
    System(
        "pd-sparse",
        PDSparseSettings,
        lexical=PDSparse,
        defaults={"labels": {"text": {"max_tokens": 1000}}},
        extra="trees",
    )
)
