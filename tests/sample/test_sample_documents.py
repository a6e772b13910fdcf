"""The embedded letters and their shape."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from nlpcapsule.sample import DOCUMENT_PARTS, load_documents


def label_counts(part: str) -> Counter[str]:
    return Counter(label for document in load_documents(part) for label in document.labels)


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


def test_no_document_occurs_twice() -> None:
    texts = [document.text for part in DOCUMENT_PARTS for document in load_documents(part)]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("part", DOCUMENT_PARTS)
def test_text_is_finished_prose(part: str) -> None:
    for document in load_documents(part):
        assert document.text.isprintable()
        assert not re.search(r"[{}]|  |\.\.|\?\.|,\.|\b(\w+) \1\b", document.text), document.text
        assert not re.search(r"[.?] [a-z]", document.text), document.text
        assert document.text[0].isupper() or document.text[0].isdigit()
