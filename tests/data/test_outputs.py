"""Partial routing: the outputs D⁺ ∪ D⁻ of a document, and what they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.data.outputs import all_outputs, batch_outputs, hard_outputs, uniform_outputs

LABEL_COUNT = 12
OWN = st.lists(st.lists(st.integers(0, LABEL_COUNT - 1), unique=True, max_size=6), min_size=1, max_size=5)


def arrays(rows):
    return [np.array(row, dtype=np.int64) for row in rows]


def routed_to(outputs, row):
    """The ids a document is really routed to, and those of them that are its own labels by the targets."""
    valid = np.ones(outputs.ids.shape[1], bool) if outputs.valid is None else outputs.valid[row]
    return outputs.ids[row][valid].tolist(), outputs.ids[row][valid & (outputs.targets[row] == 1)].tolist()


def check_each_document(outputs, own, negatives):
    for row, labels in enumerate(own):
        ids, positive = routed_to(outputs, row)
        assert len(ids) == len(set(ids)), "an output twice"
        assert set(positive) == set(labels)
        assert len(ids) == len(labels) + min(negatives, LABEL_COUNT - len(labels))
    if outputs.valid is not None:
        assert not outputs.targets[~outputs.valid].any()
    assert outputs.targets.dtype == np.float32
    assert outputs.ids.dtype == np.int64


@given(OWN, st.integers(1, 15), st.integers(0, 100))
def test_uniform_outputs_are_the_own_labels_and_as_many_others_as_asked(own, negatives, seed):
    outputs = uniform_outputs(arrays(own), LABEL_COUNT, negatives, np.random.default_rng(seed))
    check_each_document(outputs, own, negatives)


@given(OWN, st.integers(1, 15), st.data())
def test_hard_outputs_are_the_own_labels_and_the_best_nominated_others(own, negatives, data):
    order = st.permutations(range(LABEL_COUNT))
    nominated = [data.draw(order) for _ in own]
    outputs = hard_outputs(arrays(own), np.array(nominated), negatives)
    check_each_document(outputs, own, negatives)
    for row, (labels, ranked) in enumerate(zip(own, nominated, strict=True)):
        ids, _ = routed_to(outputs, row)
        assert ids[len(labels) :] == [label for label in ranked if label not in labels][:negatives]


@given(OWN)
def test_batch_outputs_are_the_labels_of_the_whole_batch(own):
    outputs = batch_outputs(arrays(own), LABEL_COUNT)
    union = sorted({label for row in own for label in row})
    assert outputs.ids.tolist() == (union or [0])
    assert outputs.targets.tolist() == [[float(label in row) for label in outputs.ids] for row in own]
    assert outputs.valid is None


def test_a_batch_without_any_label_still_has_an_output_to_push_down():
    outputs = batch_outputs(arrays([[], []]), LABEL_COUNT)
    assert outputs.ids.tolist() == [0]
    assert outputs.targets.tolist() == [[0.0], [0.0]]


@given(OWN)
def test_all_outputs_have_a_target_for_every_label(own):
    outputs = all_outputs(arrays(own), LABEL_COUNT)
    assert outputs.ids is None
    assert outputs.valid is None
    assert outputs.targets.tolist() == [[float(label in row) for label in range(LABEL_COUNT)] for row in own]


def test_documents_with_equally_many_outputs_need_no_mask():
    outputs = uniform_outputs(arrays([[1], [2]]), LABEL_COUNT, 3, np.random.default_rng(0))
    assert outputs.valid is None
    assert outputs.ids.shape == (2, 4)


def test_shorter_sets_are_filled_up_and_masked():
    outputs = hard_outputs(arrays([[1, 2], [3]]), np.array([[4, 5], [6, 3]]), negatives=2)
    assert outputs.ids.tolist() == [[1, 2, 4, 5], [3, 6, 0, 0]]
    assert outputs.valid.tolist() == [[True] * 4, [True, True, False, False]]
    assert outputs.targets.tolist() == [[1, 1, 0, 0], [1, 0, 0, 0]]


def test_places_without_a_nominated_label_are_passed_over():
    nominated = np.array([[-1, 4, 1, -1, 7, 8], [-1, -1, -1, -1, 6, 2]])
    outputs = hard_outputs(arrays([[1], [2]]), nominated, negatives=2)
    assert outputs.ids.tolist() == [[1, 4, 7], [2, 6, 0]]
    assert outputs.valid.tolist() == [[True] * 3, [True, True, False]]


@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_negatives_are_drawn_without_preference(seed):
    generator = np.random.default_rng(seed)
    own = arrays([[0, 5]])
    drawn = np.zeros(LABEL_COUNT)
    for _ in range(2000):
        outputs = uniform_outputs(own, LABEL_COUNT, 3, generator)
        drawn[outputs.ids[0, 2:]] += 1
    assert drawn[[0, 5]].tolist() == [0, 0]
    others = np.delete(drawn, [0, 5])
    np.testing.assert_allclose(others, 600, atol=120)  # more than five standard deviations


def test_the_same_seed_draws_the_same_negatives():
    first, second = (
        uniform_outputs(arrays([[1], [2]]), LABEL_COUNT, 4, np.random.default_rng(7)) for _ in range(2)
    )
    assert first.ids.tolist() == second.ids.tolist()
