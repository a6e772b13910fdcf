"""The embedded questions: their candidates, and what the test part holds back."""

from __future__ import annotations

import re

import pytest

from nlpcapsule.sample import QUESTION_PARTS, load_questions


def test_parts_have_their_sizes() -> None:
    sizes = {part: len(load_questions(part)) for part in QUESTION_PARTS}
    assert sizes == {"train": 180, "dev": 30, "test": 75}


@pytest.mark.parametrize("part", QUESTION_PARTS)
def test_candidates_are_six_to_ten_with_one_to_three_right(part: str) -> None:
    for question in load_questions(part):
        labels = [candidate.label for candidate in question.candidates]
        assert 6 <= len(labels) <= 10
        assert 1 <= labels.count(1) <= 3
        assert labels.count(0) + labels.count(1) == len(labels)


@pytest.mark.parametrize("part", QUESTION_PARTS)
def test_candidates_of_a_question_differ(part: str) -> None:
    for question in load_questions(part):
        texts = [candidate.text for candidate in question.candidates]
        assert len(set(texts)) == len(texts), question.text


def test_right_answers_stand_anywhere() -> None:
    questions = load_questions("train")
    right_first = sum(question.candidates[0].label == 1 for question in questions)
    right_last = sum(question.candidates[-1].label == 1 for question in questions)
    assert 0.1 * len(questions) < right_first < 0.5 * len(questions)
    assert 0.1 * len(questions) < right_last < 0.5 * len(questions)


def test_right_answers_use_other_words_than_the_question() -> None:
    for part in QUESTION_PARTS:
        for question in load_questions(part):
            asked = set(re.findall(r"\w+", question.text.lower()))
            for candidate in question.candidates:
                if candidate.label == 1:
                    assert set(re.findall(r"\w+", candidate.text.lower())) - asked, question.text


def test_wrong_candidates_share_words_with_the_question() -> None:
    def shared_words(question_text: str, candidate_text: str) -> int:
        asked = set(re.findall(r"\w+", question_text.lower()))
        return len(asked & set(re.findall(r"\w+", candidate_text.lower())))

    wrong_shares_as_much = 0
    questions = load_questions("train")
    for question in questions:
        shared = {0: 0, 1: 0}
        for candidate in question.candidates:
            assert candidate.label is not None
            words = shared_words(question.text, candidate.text)
            shared[candidate.label] = max(shared[candidate.label], words)
        wrong_shares_as_much += shared[0] >= shared[1]
    assert wrong_shares_as_much > 0.5 * len(questions)


def test_a_sentence_may_be_right_for_one_question_and_wrong_for_another() -> None:
    """Else a system could learn which sentences are answers without reading the question."""
    openings: dict[str, set[int | None]] = {}
    for question in load_questions("train"):
        for candidate in question.candidates:
            opening = " ".join(candidate.text.split()[:3])
            openings.setdefault(opening, set()).add(candidate.label)
    assert sum(labels == {0, 1} for labels in openings.values()) > 50


def test_no_question_occurs_twice() -> None:
    texts = [question.text for part in QUESTION_PARTS for question in load_questions(part)]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("part", QUESTION_PARTS)
def test_text_is_finished_prose(part: str) -> None:
    for question in load_questions(part):
        assert question.text.endswith("?")
        for text in (question.text, *(candidate.text for candidate in question.candidates)):
            assert text.isprintable()
            assert not re.search(r"[{}]|  |\.\.|\b(\w+) \1\b", text), text
            assert text[0].isupper() or text[0].isdigit(), text
        assert all(candidate.text.endswith(".") for candidate in question.candidates)
