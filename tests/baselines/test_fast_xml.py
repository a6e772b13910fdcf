"""FastXML: a node's equations against plain versions; a forest that learns, keeps and repeats itself."""

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from class_constants import settings_of
from label_vocabulary import vocabulary_of
from nlpcapsule.baselines import compiled, fast_xml, fast_xml_node
from nlpcapsule.baselines.fast_xml import FastXML, FastXMLSettings
from nlpcapsule.data.encoded import EncodedDocuments, encode_documents
from nlpcapsule.data.ragged import Ragged
from nlpcapsule.data.tokens import WordTokenizer
from nlpcapsule.errors import MissingExtraError
from nlpcapsule.lexical.ranker import Fitting
from nlpcapsule.sample import load_documents

pytestmark = pytest.mark.slow  # numba compiles

LABELS, WORDS = 6, 40
SMALL = FastXMLSettings(trees=5)


@pytest.fixture(autouse=True)
def _with_numba(request):
    if "without_numba" not in request.node.name:
        pytest.importorskip("numba")


def documents_with_telling_words(count, seed):
    """One or two labels each; word 2 + label says the label, the words from 10 on say nothing."""
    random = np.random.default_rng(seed)
    labels = [np.sort(random.choice(LABELS, random.integers(1, 3), replace=False)) for _ in range(count)]
    noise = random.integers(10, WORDS, (count, 6))
    tokens = [[*(2 + held), *others] for held, others in zip(labels, noise, strict=True)]
    return EncodedDocuments(Ragged.from_rows(tokens), Ragged.from_rows(labels))


def fitting(folder, **changes):
    options = {"words": [str(word) for word in range(WORDS)], "label_count": LABELS, "ignored": (0, 1)}
    return Fitting(**{**options, "seed": 3, "checkpoint": folder, **changes})


@pytest.fixture(scope="module")
def train():
    return documents_with_telling_words(300, seed=1)


@pytest.fixture(scope="module")
def unseen():
    return documents_with_telling_words(200, seed=2)


@pytest.fixture(scope="module")
def model(train, tmp_path_factory):
    pytest.importorskip("numba")
    return FastXML.fit(SMALL, train, fitting(tmp_path_factory.mktemp("trees")))


def same(first, second):
    return all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def test_labels_told_by_a_word_are_found_in_unseen_documents(model, unseen):
    ids, log_odds = model.top(unseen.tokens, 3)
    assert ids.shape == log_odds.shape == (200, 3)
    assert ids.dtype == np.int64
    assert log_odds.dtype == np.float64
    assert all(best in held for (best, *_), held in zip(ids, unseen.labels, strict=True))


def plain_ndcg(ranking, held):
    gain = sum(1 / np.log2(2 + place) for place, label in enumerate(ranking) if label in held)
    return gain / sum(1 / np.log2(2 + place) for place in range(len(held)))


def label_rows(count, label_count, seed):
    random = np.random.default_rng(seed)
    return as_in_a_node(
        np.sort(random.choice(label_count, random.integers(1, 4), replace=False)) for _ in range(count)
    )


def as_in_a_node(rows):
    """In the number types a node has them, or all would be compiled once more."""
    ragged = Ragged.from_rows(rows)
    return Ragged(ragged.values.astype(np.int64), ragged.offsets.astype(np.int32))


@pytest.mark.parametrize("seed", range(5))
def test_no_ranking_of_the_labels_has_a_higher_ndcg_than_the_one_of_a_node(seed):
    rows = label_rows(9, 5, seed)
    importance = fast_xml_node.inverse_ideal_gains(rows.offsets)
    discounts = fast_xml_node.rank_discounts(rows.offsets, rows.values, 5, importance)
    chosen = np.argsort(-discounts)
    totals = [sum(plain_ndcg(order, held) for held in rows) for order in itertools.permutations(range(5))]
    assert sum(plain_ndcg(chosen, held) for held in rows) == pytest.approx(max(totals))
    assert discounts[chosen] == pytest.approx(1 / np.log2(np.arange(2, 7)))


@pytest.mark.parametrize("seed", range(5))
def test_choosing_sides_by_turns_never_loses_and_ends_where_no_document_gains_by_moving(seed):
    rows = label_rows(120, 12, seed)
    start = 2 * np.random.default_rng(seed).integers(2, size=120) - 1
    sides, history = fast_xml_node.settle_sides(rows.offsets, rows.values, 12, start)
    assert len(history) > 2
    assert (np.diff(history) > -1e-9).all()
    ideal = fast_xml_node.inverse_ideal_gains(rows.offsets)
    rankings = {
        side: np.argsort(
            -fast_xml_node.rank_discounts(rows.offsets, rows.values, 12, ideal * (sides == side)),
            kind="stable",
        )
        for side in (-1, 1)
    }
    stay = [plain_ndcg(rankings[side], held) for side, held in zip(sides, rows, strict=True)]
    move = [plain_ndcg(rankings[-side], held) for side, held in zip(sides, rows, strict=True)]
    assert sum(stay) == pytest.approx(history[-1])
    assert (np.array(stay) >= np.array(move) - 1e-8).all()


def test_documents_with_the_same_labels_end_on_the_same_side():
    rows = as_in_a_node([[0, 1], [2, 3]] * 20)
    start = 2 * np.random.default_rng(0).integers(2, size=40) - 1
    sides, _ = fast_xml_node.settle_sides(rows.offsets, rows.values, 4, start)
    assert len(set(sides[::2])) == len(set(sides[1::2])) == 1
    assert sides[0] != sides[1]


@pytest.mark.parametrize("penalty", [0.5, 20.0])
def test_the_separator_is_the_minimum_a_general_solver_finds(penalty):
    features = sparse.random(80, 30, 0.3, format="csr", random_state=0, dtype=np.float32)
    noise = 0.2 * np.random.default_rng(0).normal(size=80)
    sides = np.where(features.toarray()[:, :3].sum(axis=1) + noise > 0.4, 1, -1)
    prices = np.where(sides > 0, penalty, 2 * penalty)
    rows = np.arange(10, 80)  # a node that does not hold all documents
    matrix = (features.indptr, features.indices, features.data)
    columns, entries = fast_xml_node.node_columns(matrix, 30, rows)
    weights, margins = fast_xml_node.l1_logistic(entries, sides[rows], prices[rows], 1e-6, 200)
    dense = features.toarray()[rows][:, columns].astype(float)
    assert margins == pytest.approx(dense @ weights)

    def price_and_slope(halves):
        """f(u − v) for u, v ≥ 0, where the L1 norm is linear."""
        pull = -sides[rows] * (dense @ (halves[: len(columns)] - halves[len(columns) :]))
        slope = dense.T @ (-prices[rows] * sides[rows] / (1 + np.exp(-pull)))
        return halves.sum() + prices[rows] @ np.logaddexp(0, pull), np.concatenate([1 + slope, 1 - slope])

    start, bounds = np.zeros(2 * len(columns)), [(0, None)] * (2 * len(columns))
    options = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-14, "gtol": 1e-9}
    best = minimize(price_and_slope, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    reached, _ = price_and_slope(np.concatenate([weights.clip(0), (-weights).clip(0)]))
    assert reached == pytest.approx(best.fun, rel=1e-5)
    assert weights == pytest.approx(best.x[: len(columns)] - best.x[len(columns) :], rel=0.01, abs=0.01)
    assert (weights != 0).any()
    assert (weights == 0).any()


def test_a_document_keeps_its_ranking_whatever_stands_beside_it(model, unseen):
    together = model.top(unseen.tokens, 4)
    alone = [model.top(unseen.tokens.take([row]), 4) for row in range(20)]
    assert same([part[:20] for part in together], map(np.concatenate, zip(*alone, strict=True)))


def test_a_saved_forest_ranks_as_before(model, unseen, tmp_path):
    model.save(tmp_path)
    assert same(FastXML.load(SMALL, tmp_path).top(unseen.tokens, 6), model.top(unseen.tokens, 6))


def test_the_same_seed_gives_the_same_forest_and_another_seed_another(model, train, unseen, tmp_path):
    again = FastXML.fit(SMALL, train, fitting(tmp_path / "again"))
    other = FastXML.fit(SMALL, train, fitting(tmp_path / "other", seed=4))
    assert same(again.top(unseen.tokens, 6), model.top(unseen.tokens, 6))
    assert not same(other.top(unseen.tokens, 6), model.top(unseen.tokens, 6))


def test_a_stopped_training_grows_only_the_missing_trees_and_ends_the_same(
    model, train, unseen, tmp_path, monkeypatch
):
    class StoppedError(Exception):
        pass

    def stop_after_two(done, total):
        if done == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        FastXML.fit(SMALL, train, fitting(tmp_path, advance=stop_after_two))
    grown, told = [], []
    grow_tree = fast_xml.grow_tree
    monkeypatch.setattr(fast_xml, "grow_tree", lambda *given: grown.append(1) or grow_tree(*given))
    resumed = FastXML.fit(SMALL, train, fitting(tmp_path, advance=lambda *step: told.append(step)))
    assert len(grown) == 3
    assert told == [(done, 5) for done in range(1, 6)]
    assert same(resumed.top(unseen.tokens, 6), model.top(unseen.tokens, 6))


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_a_document_without_a_known_word_gets_every_label_once(train, tmp_path, bias):
    settings = settings_of(FastXMLSettings, trees=2, bias=bias)
    model = FastXML.fit(settings, train, fitting(tmp_path))
    ids, log_odds = model.top(Ragged.from_rows([[1], [0, 1]]), 10)
    assert ids.shape == (2, LABELS)
    assert (np.sort(ids, axis=1) == np.arange(LABELS)).all()
    assert np.isfinite(log_odds).all()


def test_scores_are_log_odds_of_leaf_shares_and_labels_never_reached_come_last_by_id(tmp_path):
    rows = Ragged.from_rows([[2]] * 4)
    documents = EncodedDocuments(rows, Ragged.from_rows([[4], [4], [4, 2], [4, 2, 5]]))
    settings = settings_of(
        FastXMLSettings, trees=3, kept_labels=2
    )  # one leaf; label 5 is the one it does not keep
    ids, log_odds = FastXML.fit(settings, documents, fitting(tmp_path)).top(rows.take([0]), 6)
    assert ids.tolist() == [[4, 2, 0, 1, 3, 5]]
    nearly = np.log(1e12)
    assert log_odds[0] == pytest.approx([nearly, 0, -nearly, -nearly, -nearly, -nearly], rel=1e-4)


def test_labels_of_many_documents_are_ranked_better_than_the_most_frequent_ones_on_the_sample(tmp_path):
    letters, held_out = load_documents("train")[:600], load_documents("dev")[:150]
    tokenizer = WordTokenizer.train((row.text for row in letters), 5000, 2)
    labels = vocabulary_of([row.labels for row in letters])
    train, dev = (encode_documents(part, tokenizer, labels, 300) for part in (letters, held_out))
    words = [str(word) for word in range(tokenizer.size)]
    ignored = (tokenizer.padding_id, tokenizer.unknown_id)
    setting = fitting(tmp_path, words=words, label_count=len(labels), ignored=ignored)
    ids, _ = FastXML.fit(FastXMLSettings(trees=5), train, setting).top(dev.tokens, 3)
    majority = [label for label, _ in Counter(train.labels.values.tolist()).most_common(3)]

    def precision(rankings):
        return np.mean([np.isin(best, held) for best, held in zip(rankings, dev.labels, strict=True)])

    assert precision(ids) > 1.5 * precision([majority] * len(dev))


def test_without_numba_the_error_names_the_command_that_installs_it(train, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "numba", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'nlpcapsule\[trees\]'"):
        FastXML.fit(SMALL, train, fitting(tmp_path))
    stub = FastXML(SMALL, None, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'nlpcapsule\[trees\]'"):
        stub.top(train.tokens, 1)


def test_without_numba_the_module_can_be_imported():
    program = "import sys; sys.modules['numba'] = None; import nlpcapsule.baselines.fast_xml"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
