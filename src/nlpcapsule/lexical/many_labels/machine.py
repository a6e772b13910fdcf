"""Train one linear support vector machine on few rows, hundreds of thousands of times.

scikit-learn's `LinearSVC` spends more time on checks than liblinear on a label of few documents. The
function of scikit-learn that calls liblinear is used directly. It is not public: if it is missing, or does
not give what `LinearSVC` gives, `LinearSVC` is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

_SQUARED_HINGE_DUAL = 1  # liblinear's number of the solver
_TOLERANCE, _MOST_ITERATIONS, _BIAS = 1e-4, 1000, 1.0  # those of `LinearSVC`


class Rows(NamedTuple):
    """Sparse rows (N, V): what liblinear reads of a `csr_matrix`, which takes longer to make."""

    data: np.ndarray  # (entries,) float32 or float64
    indices: np.ndarray  # (entries,) int32
    indptr: np.ndarray  # (N + 1,) int32
    shape: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.data)

    def matrix(self) -> sparse.csr_matrix:
        """Return the rows as scikit-learn takes them."""
        return sparse.csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)


def train_machine(
    rows: Rows, has_label: np.ndarray, importance: np.ndarray, C: float, seed: int
) -> tuple[np.ndarray, float]:
    """Return the weights (V,) float64 and the bias of a machine with squared hinge loss.

    `has_label` (N,) is 1.0 or 0.0, and `importance` (N,) the weights of the rows; all float64.
    """
    call = _liblinear()
    if call is None:
        return fit_estimator(rows.matrix(), has_label, importance, C, seed)
    return _with_liblinear(call, rows, has_label, importance, C, seed)


def _with_liblinear(
    call: Callable[..., Any], rows: Rows, has_label: np.ndarray, importance: np.ndarray, C: float, seed: int
) -> tuple[np.ndarray, float]:
    solver = (_SQUARED_HINGE_DUAL, _TOLERANCE, _BIAS, C)
    more = (_MOST_ITERATIONS, _random_seed(seed), 0.1, importance)  # 0.1 is read by regressions only
    found = call(rows, has_label, True, *solver, np.ones(2), *more)[0]  # (1, V + 1)
    return found[0, :-1], float(found[0, -1])


def fit_estimator(
    matrix: sparse.csr_matrix, has_label: np.ndarray, importance: np.ndarray | None, C: float, seed: int
) -> tuple[np.ndarray, float]:
    """Return the weights (V,) and the bias of `LinearSVC` on rows (N, V)."""
    from sklearn import config_context  # slow to import and only needed here
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=C, loss="squared_hinge", dual=True, random_state=seed)
    with config_context(assume_finite=True, skip_parameter_validation=True):  # checks take long for few rows
        machine.fit(matrix, has_label, importance)
    return machine.coef_[0], float(machine.intercept_[0])


@lru_cache(maxsize=1)
def _liblinear() -> Callable[..., Any] | None:
    """Return the function that calls liblinear, if it gives the same as `LinearSVC` on a small problem."""
    try:
        from sklearn.svm._liblinear import train_wrap

        generator = np.random.default_rng(0)
        matrix = sparse.random(40, 12, density=0.4, format="csr", random_state=0)
        rows = Rows(matrix.data, matrix.indices, matrix.indptr, matrix.shape)
        has_label = (np.arange(40) % 3 == 0).astype(np.float64)
        problem = (rows, has_label, generator.uniform(1, 9, 40), 0.7, 5)
        expected, expected_bias = fit_estimator(matrix, *problem[1:])  # also tells liblinear to print nothing
        weights, bias = _with_liblinear(train_wrap, *problem)
    except Exception:  # whatever another version of scikit-learn does instead
        return None
    is_same = np.array_equal(weights, expected) and bias == expected_bias
    return train_wrap if is_same else None


@lru_cache(maxsize=16)
def _random_seed(seed: int) -> int:
    """Return the number that `LinearSVC(random_state=seed)` gives liblinear."""
    return int(np.random.RandomState(seed).randint(np.iinfo("i").max))
