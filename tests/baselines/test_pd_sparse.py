"""PD-Sparse: its dual is solved, its weights are sparse, and it ranks labels of unseen documents."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from label_vocabulary import vocabulary_of
from nlpcapsule.baselines import compiled, pd_sparse_solver
from nlpcapsule.baselines.pd_sparse import PDSparse, PDSparseSettings
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import MissingExtraError
from nlpcapsule.lexical.ranker import Fitting
from nlpcapsule.sample import load_documents

WORDS, LABELS = 40, 8
SETTINGS = PDSparseSettings(l1=0.01, C=1.0, epochs=6)
pytestmark = [  # slow: numba compiles
    pytest.mark.slow,
    pytest.mark.skipif(compiled.numba is None, reason="numba is not installed"),
]


def documents_of_rule(count, seed):
    """Word 2 + k stands for label k; the other words mean nothing. One to three labels each."""
    generator = np.random.default_rng(seed)
    tokens, labels = [], []
    for _ in range(count):
        chosen = generator.choice(LABELS, generator.integers(1, 4), replace=False)
        noise = generator.integers(2 + LABELS, WORDS, 6)
        tokens.append(generator.permutation(np.concatenate([2 + chosen, noise])))
        labels.append(np.sort(chosen))
    return EncodedDocuments(Ragged.from_rows(tokens), Ragged.from_rows(labels))


def fitting_in(folder, seed=0, **options):
    words = [f"w{number}" for number in range(WORDS)]
    return Fitting(words, LABELS, ignored=(0, 1), seed=seed, checkpoint=folder, **options)


def same_weights(one, other):
    return one.shape == other.shape and np.array_equal(one.toarray(), other.toarray())


def tiny_problem(seed, documents=12, words=6, labels=5):
    """Rows of length 1; the right labels follow from the words, but not quite."""
    generator = np.random.default_rng(seed)
    rows = generator.random((documents, words)) * (generator.random((documents, words)) < 0.6)
    rows[:, 0] += 0.1
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ generator.normal(size=(words, labels)) + 0.1 * generator.normal(size=(documents, labels))
    right = (scores >= np.sort(scores, axis=1)[:, [-2]]).astype(np.float32)  # two each
    return rows.astype(np.float32), right


def dual_objective(rows, right, alpha, l1):
    sums = rows.T.astype(np.float64) @ alpha  # (V, n)
    weights = np.sign(sums) * np.maximum(np.abs(sums) - l1, 0)
    return 0.5 * (weights**2).sum() + alpha[right == 0].sum(), weights


def primal_objective(rows, right, weights, l1, penalty):
    scores = rows.astype(np.float64) @ weights  # (N, n)
    worst = np.where(right == 0, scores, -np.inf).max(axis=1)
    best = np.where(right > 0, scores, np.inf).min(axis=1)
    loss = np.maximum(1 + worst - best, 0).sum()
    return 0.5 * (weights**2).sum() + l1 * np.abs(weights).sum() + penalty * loss


def passes_over(rows, right, l1, penalty, count):
    """α after each pass, dense."""
    x, y, alpha = sparse.csr_matrix(rows), sparse.csr_matrix(right), sparse.csr_matrix(right.shape)
    for number in range(count):
        order = np.random.default_rng(number).permutation(len(rows))
        alpha = pd_sparse_solver.one_pass(x, y, alpha, order, l1, penalty)
        yield alpha.toarray()


def test_labels_that_stand_for_a_word_are_found_in_unseen_documents(tmp_path):
    model = PDSparse.fit(SETTINGS, documents_of_rule(200, seed=1), fitting_in(tmp_path))
    unseen = documents_of_rule(100, seed=2)
    ranked, _ = model.top(unseen.tokens, 3)
    for row, true in zip(ranked, unseen.labels, strict=True):
        assert set(row[: len(true)]) == set(true)


targets = st.lists(st.floats(-3, 3).map(lambda value: round(value, 2)), min_size=1, max_size=5)


@given(targets, targets, st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=60)
def test_the_block_problem_is_solved_as_by_a_general_solver(b, c, penalty):
    b, c = np.array(b), np.array(c)
    u, v = pd_sparse_solver.nearest_allowed(b, c, penalty)
    assert (u >= 0).all()
    assert (v >= 0).all()
    assert u.sum() == pytest.approx(v.sum(), abs=1e-9)
    assert u.sum() <= penalty + 1e-9
    target = np.concatenate([b, c])
    found = minimize(
        lambda point: 0.5 * ((point - target) ** 2).sum(),
        np.zeros(len(target)),
        jac=lambda point: point - target,
        method="SLSQP",
        bounds=[(0, None)] * len(target),
        constraints=[
            {"type": "eq", "fun": lambda point: point[: len(b)].sum() - point[len(b) :].sum()},
            {"type": "ineq", "fun": lambda point: penalty - point[: len(b)].sum()},
        ],
        options={"ftol": 1e-12, "maxiter": 300},
    )
    ours = 0.5 * ((np.concatenate([u, v]) - target) ** 2).sum()
    assert ours <= found.fun + 1e-8
    np.testing.assert_allclose(np.concatenate([u, v]), found.x, atol=1e-4)


@pytest.mark.parametrize(("l1", "penalty"), [(0.0, 1.0), (0.05, 0.3), (0.2, 5.0)])
def test_each_pass_keeps_alpha_allowed_and_the_dual_never_rises(l1, penalty):
    rows, right = tiny_problem(seed=3)
    before = 0.0
    for alpha in passes_over(rows, right, l1, penalty, 12):
        ups, downs = np.where(right > 0, alpha, 0), np.where(right == 0, alpha, 0)
        assert (ups >= 0).all()
        assert (downs <= 0).all()
        np.testing.assert_allclose(ups.sum(axis=1), -downs.sum(axis=1), atol=1e-9)
        assert (ups.sum(axis=1) <= penalty + 1e-9).all()
        objective, _ = dual_objective(rows, right, alpha, l1)
        assert objective <= before + 1e-6
        before = objective
    assert before < -0.1  # or it never moved


@pytest.mark.parametrize(("l1", "penalty"), [(0.0, 1.0), (0.05, 0.3), (0.2, 1.0)])
def test_the_duality_gap_closes(l1, penalty):
    """The primal is worth at least −G of any allowed α: where both meet, W is the minimum."""
    rows, right = tiny_problem(seed=4)
    for alpha in passes_over(rows, right, l1, penalty, 1500):
        objective, weights = dual_objective(rows, right, alpha, l1)
    primal = primal_objective(rows, right, weights, l1, penalty)
    assert primal == pytest.approx(-objective, rel=2e-3)
    assert primal < 0.9 * primal_objective(rows, right, 0 * weights, l1, penalty)


def test_saved_and_loaded_it_ranks_the_same(tmp_path):
    model = PDSparse.fit(SETTINGS, documents_of_rule(60, seed=1), fitting_in(tmp_path / "checkpoint"))
    model.save(tmp_path)
    again = PDSparse.load(SETTINGS, tmp_path)
    tokens = documents_of_rule(20, seed=2).tokens
    for one, other in zip(model.top(tokens, 5), again.top(tokens, 5), strict=True):
        assert np.array_equal(one, other)


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path):
    documents = documents_of_rule(80, seed=1)
    whole = PDSparse.fit(SETTINGS, documents, fitting_in(tmp_path / "whole"))

    def stop_after_two(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PDSparse.fit(SETTINGS, documents, fitting_in(tmp_path / "stopped", advance=stop_after_two))
    told = []
    fitting = fitting_in(tmp_path / "stopped", advance=lambda done, total: told.append((done, total)))
    resumed = PDSparse.fit(SETTINGS, documents, fitting)
    assert told == [(3, 6), (4, 6), (5, 6), (6, 6)]
    assert same_weights(resumed.weights, whole.weights)


def test_a_seed_fixes_the_weights(tmp_path):
    documents = documents_of_rule(80, seed=1)
    first, again, other = (
        PDSparse.fit(SETTINGS, documents, fitting_in(tmp_path / name, seed=seed)).weights
        for name, seed in (("first", 5), ("again", 5), ("other", 6))
    )
    assert same_weights(first, again)
    assert not same_weights(first, other)


def test_batch_mates_change_nothing(tmp_path):
    model = PDSparse.fit(SETTINGS, documents_of_rule(60, seed=1), fitting_in(tmp_path))
    tokens = documents_of_rule(15, seed=2).tokens
    together = model.top(tokens, 4)
    for row in range(len(tokens)):
        alone = model.top(tokens.take([row]), 4)
        assert np.array_equal(alone[0][0], together[0][row])
        assert np.array_equal(alone[1][0], together[1][row])


def test_a_document_of_unknown_words_is_ranked_by_label_id(tmp_path):
    model = PDSparse.fit(SETTINGS, documents_of_rule(60, seed=1), fitting_in(tmp_path))
    labels, scores = model.top(Ragged.from_rows([[1, 1, 0]]), 99)
    assert labels.dtype == np.int64
    assert labels.tolist() == [list(range(LABELS))]
    assert scores.tolist() == [[0.0] * LABELS]


def test_documents_that_teach_nothing_are_passed_over(tmp_path):
    useful = documents_of_rule(40, seed=1)
    tokens = [[1], [4, 20, 21], [5, 22, 23], *useful.tokens]
    labels = [[2], [LABELS + 3], list(range(LABELS)), *useful.labels]  # no word; unseen label; all labels
    documents = EncodedDocuments(Ragged.from_rows(tokens), Ragged.from_rows(labels))
    model = PDSparse.fit(SETTINGS, documents, fitting_in(tmp_path))
    ranked, scores = model.top(useful.tokens, 1)
    assert np.isfinite(scores).all()
    assert all(row[0] in true for row, true in zip(ranked, useful.labels, strict=True))


def test_a_higher_price_leaves_fewer_weights(tmp_path):
    documents = documents_of_rule(80, seed=1)
    counts = [
        PDSparse.fit(PDSparseSettings(l1=l1, epochs=6), documents, fitting_in(tmp_path / str(l1))).weights.nnz
        for l1 in (0.0, 0.05, 0.5)
    ]
    assert counts[0] > counts[1] > counts[2] > 0


def test_it_beats_the_most_frequent_labels_on_the_sample(tmp_path):
    train, dev = list(load_documents("train"))[:600], list(load_documents("dev"))[:150]
    tokenizer = WordTokenizer.train((row.text for row in train), 5_000, 2)
    names = vocabulary_of([row.labels for row in train])
    encoded, held_out = (encode_documents(part, tokenizer, names, 200) for part in (train, dev))
    ignored = (tokenizer.padding_id, tokenizer.unknown_id)
    fitting = Fitting(list(tokenizer.vocabulary), len(names), ignored, seed=0, checkpoint=tmp_path)
    model = PDSparse.fit(PDSparseSettings(epochs=5), encoded, fitting)
    ranked, _ = model.top(held_out.tokens, 3)
    frequent = [label for label, _ in Counter(encoded.labels.values.tolist()).most_common(3)]
    hits = np.mean([np.isin(row, true).mean() for row, true in zip(ranked, held_out.labels, strict=True)])
    majority_hits = np.mean([np.isin(frequent, true).mean() for true in held_out.labels])
    assert hits > 2 * majority_hits


def test_without_numba_fitting_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "numba", None)
    with pytest.raises(MissingExtraError, match=r"'numba'.*pip install 'nlpcapsule\[trees\]'"):
        PDSparse.fit(SETTINGS, documents_of_rule(5, seed=1), fitting_in(tmp_path))
