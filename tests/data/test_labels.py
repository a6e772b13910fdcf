"""Label names and their ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from label_vocabulary import vocabulary_of
from nlpcapsule.data.labels import LabelVocabulary
from nlpcapsule.errors import DataError

LABELS = [["b", "a"], ["b"], ["c", "b"], [], ["c"], ["ä"]]


def test_labels_are_ordered_by_frequency_and_then_by_name():
    vocabulary = vocabulary_of(LABELS)
    assert vocabulary.ids == ["b", "c", "a", "ä"]
    assert vocabulary.counts.tolist() == [3, 2, 1, 1]
    assert len(vocabulary) == 4
    assert "a" in vocabulary
    assert "d" not in vocabulary


@given(st.permutations(LABELS))
def test_the_order_of_documents_does_not_matter(labels):
    assert vocabulary_of(labels).ids == ["b", "c", "a", "ä"]


@pytest.mark.parametrize("labels", [[], [[], []]])
def test_without_a_single_label_there_is_nothing_to_learn(labels):
    with pytest.raises(DataError, match="nothing to learn"):
        vocabulary_of(labels)


def test_unseen_labels_get_ids_of_their_own_above_the_known_ones():
    vocabulary = vocabulary_of(LABELS)
    unseen: dict[str, int] = {}
    rows = [["a", "new"], ["other", "b"], ["new"], []]
    assert [vocabulary.numbers(row, unseen) for row in rows] == [[2, 4], [5, 0], [4], []]
    assert vocabulary.numbers(["other"], {}) == [4]


def test_json_gives_the_same_vocabulary_back():
    vocabulary = vocabulary_of([*LABELS, ['quoted "x"', "line\nbreak"]])
    again = LabelVocabulary.from_json(vocabulary.to_json())
    assert again.ids == vocabulary.ids
    assert again.counts.tolist() == vocabulary.counts.tolist()
    assert '"ä"' in vocabulary.to_json()
