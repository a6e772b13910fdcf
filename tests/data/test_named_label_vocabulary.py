"""Labels that are known by name alone stand behind those that training saw."""

from label_vocabulary import vocabulary_of
from nlpcapsule.data.label_names import LabelName, Thesaurus
from nlpcapsule.data.labels import LabelVocabulary

SEEN = vocabulary_of([["7", "3"], ["3"]])
NAMES = Thesaurus({"9": LabelName("rye"), "3": LabelName("wheat"), "1": LabelName("oats")})


def test_they_follow_in_the_order_of_the_file_with_no_documents():
    named = SEEN.with_names(NAMES)
    assert named.ids == ["3", "7", "9", "1"]
    assert named.counts.tolist() == [2, 1, 0, 0]
    assert named.names == ["wheat", "7", "rye", "oats"]
    assert named.numbers(["1", "3", "barley"], {}) == [3, 0, 4]


def test_the_labels_themselves_are_left_as_they_were():
    SEEN.with_names(NAMES)
    assert (SEEN.ids, SEEN.names) == (["3", "7"], None)


def test_names_are_written_and_read_again():
    again = LabelVocabulary.from_json(SEEN.with_names(NAMES).to_json())
    assert again.names == ["wheat", "7", "rye", "oats"]
    assert again.counts.tolist() == [2, 1, 0, 0]


def test_without_names_the_file_is_what_it_was():
    assert (
        SEEN.to_json() == '[\n{\n"label": "3",\n"documents": 2\n},\n{\n"label": "7",\n"documents": 1\n}\n]\n'
    )
    assert LabelVocabulary.from_json(SEEN.to_json()).names is None
