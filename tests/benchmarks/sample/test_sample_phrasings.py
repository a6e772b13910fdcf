"""The hand-written wording itself: enough of it, well formed, and honestly paraphrased."""

from __future__ import annotations

import random
import re

import pytest

from benchmarks.sample.phrasings import Scene, read_labels, read_letter_frame, read_scenes, read_topics
from benchmarks.sample.slots import SLOT, draw_value

FUNCTION_WORDS = re.compile(
    r"\b(a|an|the|of|to|in|on|at|by|for|from|with|and|or|but|as|so|i|my|me|we|our|us|you|your|it|its|is|are|was|were"
    r"|be|been|has|have|had|do|does|did|not|no|that|this|which|who|there|they|them|their|will|would|can|could|may"
    r"|must|should|since|because|about|into|up|out|than|more|any|all|only|again|still|every|if|when|where|what)\b"
)


def content_words(phrasing: str) -> set[str]:
    """Words that carry meaning, bluntly cut to their stems: collected, collects, collection."""
    words = re.findall(r"[a-z]+", FUNCTION_WORDS.sub(" ", SLOT.sub(" ", phrasing).lower()))
    return {re.sub(r"(ing|ion|ed|es|s|ly|e)$", "", word) for word in words}


def test_labels_have_enough_distinct_phrasings() -> None:
    for label in read_labels():
        assert len(set(label.seen)) == len(label.seen) >= 4, label.name
        assert len(set(label.unseen)) == len(label.unseen) >= 2, label.name


def test_unseen_phrasings_share_some_but_not_all_content_words_with_seen_ones() -> None:
    for label in read_labels():
        seen = set().union(*map(content_words, label.seen))
        for phrasing in label.unseen:
            assert content_words(phrasing) & seen, phrasing
            assert content_words(phrasing) - seen, phrasing


def test_no_phrasing_belongs_to_two_labels_or_to_none() -> None:
    labelled = [phrasing for label in read_labels() for phrasing in label.seen + label.unseen]
    unlabelled = [aside for topic in read_topics() for aside in topic.asides] + list(
        read_letter_frame().fillers
    )
    assert len(set(labelled + unlabelled)) == len(labelled + unlabelled)


def test_label_names_are_unique() -> None:
    names = [label.name for label in read_labels()]
    assert len(set(names)) == len(names) >= 80


def test_clauses_begin_so_that_a_lead_in_may_precede_them() -> None:
    clauses = [phrasing for label in read_labels() for phrasing in label.seen + label.unseen]
    assert [clause for clause in clauses if not re.match(r"[a-z{]|I\b", clause) or clause.endswith(".")] == []


def test_every_slot_of_the_letters_can_be_filled() -> None:
    frame = read_letter_frame()
    phrasings = [phrasing for label in read_labels() for phrasing in label.seen + label.unseen]
    phrasings += [aside for topic in read_topics() for aside in topic.asides]
    phrasings += [*frame.greetings, *frame.fillers, *frame.closings]
    for slot in sorted({slot for phrasing in phrasings for slot in SLOT.findall(phrasing)}):
        assert draw_value(slot, random.Random(0))


@pytest.mark.parametrize("scene", read_scenes(), ids=lambda scene: scene.name)
def test_scene_names_its_anchor_in_every_question_and_fills_every_slot(scene: Scene) -> None:
    slots = [*scene.kinds, *scene.choices]
    for fact in scene.facts:
        for phrasing in fact.seen_questions + fact.unseen_questions:
            assert f"{{{scene.anchor}}}" in phrasing
        for phrasing in fact.seen_questions + fact.unseen_questions + fact.seen_answers + fact.unseen_answers:
            assert set(SLOT.findall(phrasing)) <= set(slots), phrasing
        assert any(f"{{{scene.anchor}}}" in answer for answer in fact.seen_answers)
