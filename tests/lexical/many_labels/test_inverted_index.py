"""Labels are nominated by their centroids, and rare labels are trained on their nearest negatives."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import normalize

from nlpcapsule.data.encoded import EncodedDocuments
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.lexical import one_vs_rest
from nlpcapsule.lexical.candidates import candidate_recall, nominate_to_file
from nlpcapsule.lexical.many_labels import inverted_index, label_machines, nearest_negatives, pool, threaded
from nlpcapsule.lexical.many_labels.inverted_index import InvertedIndex, row_products
from nlpcapsule.lexical.many_labels.nearest_negatives import NearestNegatives
from nlpcapsule.lexical.one_vs_rest import OneVsRest, OneVsRestSettings
from nlpcapsule.lexical.ranker import Fitting

LABELS, WORDS = 30, 200


def random_rows(seed: int, count: int = 40) -> sparse.csr_matrix:
    matrix = sparse.random(count, WORDS, density=0.05, random_state=seed, format="csr", dtype=np.float32)
    return normalize(matrix).astype(np.float32)


def topical_documents(seed: int = 0, count: int = 300) -> EncodedDocuments:
    """Documents whose words tell their label: label j has the words 5 j + 2 to 5 j + 6."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, LABELS, count)
    topics = labels[:, None] * 5 + 2 + generator.integers(0, 5, (count, 6))
    noise = generator.integers(152, WORDS, (count, 4))
    return EncodedDocuments(
        Ragged.from_rows(np.hstack([topics, noise])), Ragged.from_rows([[label] for label in labels])
    )


def fit(folder, documents, seed=1) -> OneVsRest:
    words = [str(word) for word in range(WORDS)]
    return OneVsRest.fit(OneVsRestSettings(), documents, Fitting(words, LABELS, (0, 1), seed, folder))


@pytest.fixture
def many_labels(monkeypatch):
    """Any data are too large to train each label on every document."""
    monkeypatch.setattr(one_vs_rest, "MOST_WORK", 0)


def in_this_process(features, tasks, count, settings, seed):
    """Fit blocks of labels where a test can change constants."""
    for task in tasks:
        yield one_vs_rest._fit_block(*task, features, settings, seed)


def test_more_documents_than_fit_in_memory_are_not_all_trained_on(tmp_path, monkeypatch):
    monkeypatch.setattr(one_vs_rest, "MOST_DOCUMENTS", 100)
    assert fit(tmp_path, topical_documents(count=101)).centroids is not None
    assert fit(tmp_path, topical_documents(count=100)).centroids is None


def test_nominations_are_those_of_a_dense_product():
    features, targets = random_rows(0), sparse.random(40, LABELS, density=0.1, random_state=1, format="csr")
    targets.data[:] = 1
    centroids = InvertedIndex.of_labels(features, targets)
    labels, cosines = centroids.nearest(features, 7)
    scores = (features @ centroids.weights.T).toarray()
    expected = np.lexsort((np.broadcast_to(np.arange(LABELS), scores.shape), -scores), axis=1)[:, :7]
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(cosines, np.take_along_axis(scores, expected, axis=1), rtol=1e-6)
    assert labels.dtype == np.int32


def test_centroids_are_those_of_a_slow_version(monkeypatch):
    monkeypatch.setattr(inverted_index, "_ROWS_AT_A_TIME", 7)  # several parts
    monkeypatch.setattr(inverted_index, "_CENTROID_WORDS", WORDS)
    features, targets = random_rows(0), sparse.random(40, LABELS, density=0.1, random_state=1, format="csr")
    targets.data[:] = 1
    found = InvertedIndex.of_labels(features, targets, words=150).weights.toarray()
    x, y = features.toarray()[:, :150], targets.toarray()
    sums = y.T @ x
    share = sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-9)
    for label in range(LABELS):
        expected = np.zeros(150)
        for document in np.flatnonzero(y[:, label]):
            for word in np.flatnonzero(x[document]):
                expected[word] += share[label, word] / share[y[document] > 0, word].sum()
        p = expected / (y[:, label].sum() + 1)
        weight = np.log(1 + p / np.maximum((x > 0).mean(axis=0), 1e-9))
        length = np.linalg.norm(weight)
        np.testing.assert_allclose(found[label, :150], weight / (length or 1), rtol=1e-4, atol=1e-6)
    assert not found[:, 150:].any()
    monkeypatch.setattr(inverted_index, "_CENTROID_WORDS", 6)
    assert InvertedIndex.of_labels(features, targets).weights.getnnz(axis=1).max() == 6


def test_a_rare_label_does_not_take_the_words_of_the_frequent_label_it_comes_with():
    # Label 0 has words 0 and 1, in nine documents; label 1 words 2 and 3, in one document with label 0.
    rows = np.zeros((19, WORDS), dtype=np.float32)
    rows[:9, :2] = 1
    rows[8, 2:4] = 1
    rows[np.arange(9, 19), np.arange(10, 20)] = 1
    targets = np.zeros((19, 3))
    targets[:9, 0] = targets[8, 1] = targets[9:, 2] = 1
    features = sparse.csr_matrix(normalize(rows).astype(np.float32))
    weights = InvertedIndex.of_labels(features, sparse.csr_matrix(targets)).weights.toarray()
    assert (weights[1, 2:4] > 3 * weights[1, :2]).all()
    assert (weights[0, :2] > 3 * weights[0, 2:4]).all()


def test_features_of_leads_are_not_indexed(tmp_path, many_labels):
    words = [str(word) for word in range(WORDS)]
    fitting = Fitting(words, LABELS, (0, 1), 1, tmp_path)
    fitted = OneVsRest.fit(OneVsRestSettings(lead_tokens=3), topical_documents(), fitting)
    assert fitted.centroids is not None
    fitted.check(WORDS, LABELS)
    assert fitted.centroids.weights.shape[1] == 2 * WORDS
    assert not fitted.centroids.weights[:, WORDS:].nnz


def test_a_document_without_a_known_word_gets_the_first_labels():
    centroids = InvertedIndex.of_labels(random_rows(0), sparse.eye(40, LABELS, format="csr"))
    labels, cosines = centroids.nearest(sparse.csr_matrix((1, WORDS), dtype=np.float32), 5)
    assert labels.tolist() == [[0, 1, 2, 3, 4]]
    assert not cosines.any()


def test_every_label_is_nominated_once_if_all_are_asked_for():
    centroids = InvertedIndex.of_labels(random_rows(0), sparse.eye(40, LABELS, format="csr"))
    labels, _ = centroids.nearest(random_rows(3), 10 * LABELS)
    assert (np.sort(labels, axis=1) == np.arange(LABELS)).all()


def test_a_negative_of_a_label_never_has_it():
    documents = topical_documents()
    targets = one_vs_rest.label_matrix(documents.labels, LABELS)
    features = one_vs_rest.BagOfWords.fit(documents.tokens, WORDS).rows(documents.tokens)
    negatives = NearestNegatives.find(InvertedIndex.of_labels(features, targets), features, targets, seed=1)
    for label in range(LABELS):
        holders = targets.tocsc().indices[targets.tocsc().indptr[label] : targets.tocsc().indptr[label + 1]]
        nearest, is_sampled, weight = negatives.of(label, holders)
        sampled = negatives.sample[is_sampled]
        assert len(nearest) + len(sampled) * weight == pytest.approx(len(documents) - len(holders))
        expected = set(negatives.sample) - set(nearest) - set(holders)
        assert set(sampled) == expected
        assert not np.isin(nearest, holders).any()
    none = np.zeros(0, dtype=int)
    for one, other in zip(negatives.part(10, 20).of(3, none), negatives.of(13, none), strict=True):
        np.testing.assert_array_equal(one, other)


def test_negatives_are_in_the_order_of_their_cosines():
    documents = topical_documents()
    targets = one_vs_rest.label_matrix(documents.labels, LABELS)
    features = one_vs_rest.BagOfWords.fit(documents.tokens, WORDS).rows(documents.tokens)
    features.data[:] = np.round(features.data, 1)  # ties
    centroids = InvertedIndex.of_labels(features, targets)
    negatives = NearestNegatives.find(centroids, features, targets, seed=1)
    scores = np.zeros((len(documents), LABELS), dtype=np.float32)
    nearest, cosines = centroids.nearest(features, LABELS)
    np.put_along_axis(scores, nearest.astype(np.int64), cosines, axis=1)
    scores[targets.toarray() > 0] = 0
    for label in range(LABELS):
        found = negatives.of(label, np.zeros(0, dtype=int))[0]
        order = np.lexsort((np.arange(len(documents)), -scores[:, label]))
        np.testing.assert_array_equal(found, order[: (scores[:, label] > 0).sum()])


def test_labels_trained_on_their_nearest_negatives_are_found(tmp_path, many_labels):
    fitted = fit(tmp_path, topical_documents())
    test = topical_documents(seed=7)
    labels, margins = fitted.top(test.tokens, 3)
    assert np.mean(labels[:, 0] == test.labels.values) > 0.95
    assert (np.diff(margins, axis=1) <= 0).all()


def test_centroids_are_added_to_the_weights_the_more_the_rarer_a_label(tmp_path, many_labels, monkeypatch):
    documents = topical_documents()
    both = fit(tmp_path / "both", documents)
    monkeypatch.setattr(inverted_index, "_CENTROID_WEIGHT", 0.0)
    machines = fit(tmp_path / "machines", documents)
    counts = np.bincount(documents.labels.values, minlength=LABELS)
    assert len(set(counts)) > 3
    added = (both.weights - machines.weights).toarray()  # (n, V)
    expected = 3 / counts[:, None] ** 0.25 * both.centroids.weights.toarray()
    np.testing.assert_allclose(added, expected, atol=1e-6)


def test_blocks_of_weights_get_the_centroids_of_their_labels():
    index = InvertedIndex(random_rows(0)[:3])
    counts = np.array([1, 16, 0])
    whole, *_ = index.added_to([sparse.csr_matrix(index.weights.shape, dtype=np.float32)], counts)
    empty = [sparse.csr_matrix((rows, index.weights.shape[1]), dtype=np.float32) for rows in (2, 1)]
    blocks = sparse.vstack(list(index.added_to(empty, counts)))
    np.testing.assert_array_equal(blocks.toarray(), whole.toarray())
    np.testing.assert_allclose(whole.toarray(), index.weights.toarray() * [[3.0], [1.5], [3.0]], rtol=1e-6)


def test_frequent_labels_are_trained_on_a_part_of_their_documents(tmp_path, many_labels, monkeypatch):
    monkeypatch.setattr(one_vs_rest, "fit_blocks", in_this_process)
    every = fit(tmp_path / "all", topical_documents())
    for module in (nearest_negatives, label_machines):
        monkeypatch.setattr(module, "MOST", 4)
    part = fit(tmp_path / "part", topical_documents())
    assert np.abs(every.weights - part.weights).max() > 0.01
    test = topical_documents(seed=7)
    assert np.mean(part.top(test.tokens, 1)[0][:, 0] == test.labels.values) > 0.9


def test_a_saved_system_with_centroids_ranks_the_same(tmp_path, many_labels):
    fitted = fit(tmp_path / "parts", topical_documents())
    fitted.save(tmp_path)
    loaded = OneVsRest.load(OneVsRestSettings(), tmp_path)
    loaded.check(WORDS, LABELS)
    tokens = topical_documents(seed=7).tokens
    for one, other in zip(fitted.top(tokens, 4), loaded.top(tokens, 4), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_document_ranks_the_same_alone_and_among_others(tmp_path, many_labels):
    fitted = fit(tmp_path, topical_documents())
    tokens = topical_documents(seed=7).tokens
    labels, margins = fitted.top(tokens, 4)
    alone = fitted.top(tokens.take([5]), 4)
    np.testing.assert_array_equal(alone[0][0], labels[5])
    np.testing.assert_array_equal(alone[1][0], margins[5])


def test_many_documents_rank_as_they_do_in_parts(tmp_path, many_labels, monkeypatch):
    monkeypatch.setattr(threaded, "thread_count", lambda: 3)
    fitted = fit(tmp_path, topical_documents())
    tokens = topical_documents(seed=7, count=200).tokens
    together = fitted.top(tokens, 4)
    parts = [fitted.top(tokens.slice(start, start + 10), 4) for start in range(0, 200, 10)]
    for one, others in zip(together, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(one, np.concatenate(others))
    assert fitted.top(tokens.slice(0, 0), 4)[0].shape == (0, 4)


def test_work_in_a_thread_starts_no_further_threads(monkeypatch):
    monkeypatch.setattr(threaded, "thread_count", lambda: 2)

    def names(_: int) -> list[str]:
        return threaded.in_threads(lambda _: threading.current_thread().name, range(5))

    assert all(len(set(found)) == 1 for found in threaded.in_threads(names, range(4)))
    assert threading.current_thread().name not in names(0)


def test_candidates_in_a_file_are_those_nominated(tmp_path):
    tokens = Ragged.from_rows([[row] for row in range(5_000)])

    def nominate(part: Ragged, count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = part.values[:, None] + np.arange(count)
        return labels, labels * 0.5

    found = nominate_to_file(nominate, tokens, 3, tmp_path / "candidates.npy")
    np.testing.assert_array_equal(found, nominate(tokens, 3)[0])
    assert found.dtype == np.int32
    assert isinstance(found, np.memmap)


def test_recall_counts_known_labels_among_the_candidates():
    truth = Ragged.from_rows([[1, 2, 99], [3]])
    assert candidate_recall(np.array([[1, 5], [3, 4]]), truth, label_count=10) == pytest.approx(2 / 3)
    assert candidate_recall(np.array([[1, 5]]), Ragged.from_rows([[99]]), label_count=10) is None


def test_processes_rank_as_threads_do(tmp_path, many_labels, monkeypatch):
    monkeypatch.setattr(pool, "thread_count", lambda: 2)
    fitted, tokens = fit(tmp_path, topical_documents()), topical_documents(seed=7).tokens
    in_threads = fitted.top(tokens, 4)
    monkeypatch.setattr(one_vs_rest, "_FOR_PROCESSES", 1)
    monkeypatch.setattr(one_vs_rest, "_IN_A_PROCESS", 70)  # five parts
    monkeypatch.setattr(OneVsRest, "_best", None)  # of this process
    for one, other in zip(fitted.top(tokens, 4), in_threads, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_the_nearest_are_those_of_all_rows_whichever_word_bounds_them():
    """Rows that share no word with the others, ties, and words of few and of many rows."""
    generator = np.random.default_rng(0)
    weights = sparse.random(400, 30, density=0.2, random_state=0, format="csr", dtype=np.float32)
    weights.data = np.ceil(weights.data * 4) / 4  # ties
    weights = weights.multiply(generator.random(30) < 0.8).tocsr()
    asked = sparse.random(50, 30, density=0.2, random_state=1, format="csr", dtype=np.float32)
    for width in (1, 8, 80, 400):
        rows, cosines = InvertedIndex(weights).nearest(asked, width)
        scores = (asked @ weights.T).toarray()
        expected = np.lexsort((np.broadcast_to(np.arange(400), scores.shape), -scores), axis=1)[:, :width]
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(cosines, np.take_along_axis(scores, expected, axis=1))


def test_products_with_chosen_rows_are_those_of_a_dense_product():
    documents, rows = random_rows(0), random_rows(1)
    chosen = np.random.default_rng(0).integers(0, rows.shape[0], (documents.shape[0], 9))
    expected = np.take_along_axis((documents @ rows.T).toarray(), chosen, axis=1)
    np.testing.assert_allclose(row_products(documents, rows, chosen), expected, rtol=1e-5, atol=1e-7)
