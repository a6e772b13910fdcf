"""The embedded letters: their shape, and that unseen phrasings stay unseen."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.sample import DOCUMENT_PARTS, load_documents
from nlpcapsule.sample.documents import write_letters
from nlpcapsule.sample.phrasings import read_labels
from nlpcapsule.sample.slots import SLOT

PARTS_WITHOUT_UNSEEN = ("train", "dev", "test-seen")


def label_counts(part: str) -> Counter[str]:
    return Counter(label for document in load_documents(part) for label in document.labels)


def pattern_of(phrasing: str) -> re.Pattern[str]:
    """A phrasing as it may occur in a text, whatever fills its slots."""
    fixed = [re.escape(text) for text in SLOT.split(phrasing)[::2]]
    return re.compile(r"[\w ,.:'&-]{1,40}?".join(fixed), re.IGNORECASE)


def test_parts_have_their_sizes() -> None:
    sizes = {part: len(load_documents(part)) for part in DOCUMENT_PARTS}
    assert sizes == {"train": 1700, "dev": 250, "test-seen": 275, "test-unseen": 275}


def test_labels_have_a_long_tail() -> None:
    counts = sorted(label_counts("train").values(), reverse=True)
    assert len(counts) >= 80
    assert counts[0] >= 200
    assert sum(count >= 100 for count in counts) <= 15
    assert sum(5 <= count <= 20 for count in counts) >= 40


@pytest.mark.parametrize("part", DOCUMENT_PARTS)
def test_documents_have_one_to_five_labels_without_repeats(part: str) -> None:
    documents = load_documents(part)
    sizes = [len(document.labels) for document in documents]
    assert (min(sizes), max(sizes)) == (1, 5)
    assert 2.2 <= sum(sizes) / len(sizes) <= 2.8
    assert all(len(set(document.labels)) == len(document.labels) for document in documents)


@pytest.mark.parametrize("part", DOCUMENT_PARTS)
def test_documents_are_short_letters(part: str) -> None:
    words = [len(document.text.split()) for document in load_documents(part)]
    assert min(words) >= 25
    assert max(words) <= 80


@pytest.mark.parametrize("part", ["dev", "test-seen", "test-unseen"])
def test_every_label_of_a_later_part_occurs_in_train(part: str) -> None:
    train = label_counts("train")
    assert all(train[label] >= 3 for label in label_counts(part))


def test_unseen_phrasings_occur_in_no_other_part() -> None:
    unseen = {phrasing for label in read_labels() for phrasing in label.unseen}
    letters = write_letters(2019)
    for part in PARTS_WITHOUT_UNSEEN:
        assert not unseen.intersection(clause for letter in letters[part] for clause in letter.clauses)
    assert unseen.issuperset(clause for letter in letters["test-unseen"] for clause in letter.clauses)


def test_unseen_phrasings_cannot_be_found_in_the_text_of_other_parts() -> None:
    text = "\n".join(document.text for part in PARTS_WITHOUT_UNSEEN for document in load_documents(part))
    unseen_text = "\n".join(document.text for document in load_documents("test-unseen"))
    patterns = {phrasing: pattern_of(phrasing) for label in read_labels() for phrasing in label.unseen}
    assert [phrasing for phrasing, pattern in patterns.items() if pattern.search(text)] == []
    # The same search does find them where they belong.
    assert sum(bool(pattern.search(unseen_text)) for pattern in patterns.values()) > len(patterns) / 2


def test_seen_test_letters_combine_known_clauses_anew() -> None:
    letters = write_letters(2019)
    known = {clause for letter in letters["train"] for clause in letter.clauses}
    clauses = [clause for letter in letters["test-seen"] for clause in letter.clauses]
    assert sum(clause in known for clause in clauses) > 0.95 * len(clauses)


def test_no_document_occurs_twice() -> None:
    texts = [document.text for part in DOCUMENT_PARTS for document in load_documents(part)]
    assert len(set(texts)) == len(texts)


def test_contradicting_labels_never_share_a_letter() -> None:
    contrast = {label.name: label.contrast for label in read_labels()}
    for part in DOCUMENT_PARTS:
        for document in load_documents(part):
            contrasts = [contrast[label] for label in document.labels]
            assert len(set(contrasts)) == len(contrasts), document.text


@pytest.mark.parametrize("part", DOCUMENT_PARTS)
def test_text_is_finished_prose(part: str) -> None:
    for document in load_documents(part):
        assert document.text.isprintable()
        assert not re.search(r"[{}]|  |\.\.|\?\.|,\.|\b(\w+) \1\b", document.text), document.text
        assert not re.search(r"[.?] [a-z]", document.text), document.text
        assert document.text[0].isupper() or document.text[0].isdigit()


def test_unknown_part_suggests_the_nearest() -> None:
    with pytest.raises(NlpCapsuleError, match="did you mean 'test-unseen'"):
        load_documents("test-unsen")
