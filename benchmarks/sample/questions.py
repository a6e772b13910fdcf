"""Generate the sample's questions: one fact of a scene is right, other facts are wrong.

A sentence that answers one question is a wrong candidate for another, so that wording alone does not reveal
right answers. The names in a scene are drawn for each question, so that there is nothing to memorise.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

from benchmarks.sample.phrasings import Fact, Scene, read_scenes
from benchmarks.sample.slots import SLOT, draw_fresh_value, fill_slots

PART_SIZES = {"train": 180, "dev": 30, "test": 75}
UNSEEN_PART = "test"
HELD_OUT_SHARE = 1 / 3  # fraction of test questions about scenes that training never sees
LEAST_CANDIDATES, MOST_CANDIDATES = 6, 10
MOST_RIGHT = 3
MOST_TWIN_ANSWERS = 3


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with its shuffled candidates, its phrasing and its scene."""

    text: str
    candidates: tuple[tuple[str, int], ...]  # (text, 1 if right else 0)
    phrasing: str
    scene: str


@cache
def ask_questions(seed: int) -> dict[str, tuple[AskedQuestion, ...]]:
    """Ask the questions of all parts; no question occurs twice."""
    asked: set[str] = set()
    parts = {}
    for part, size in PART_SIZES.items():
        rng = random.Random(f"{seed}/questions/{part}")
        questions: list[AskedQuestion] = []
        facts = _deal_facts(part, size, rng)
        for scene, fact in facts:
            question = _ask(scene, fact, part, rng)
            while question.text in asked:
                question = _ask(scene, fact, part, rng)
            asked.add(question.text)
            questions.append(question)
        parts[part] = tuple(questions)
    return parts


def _deal_facts(part: str, size: int, rng: random.Random) -> list[tuple[Scene, Fact]]:
    """Choose the facts to ask about, evenly, and in the test part some of held-out scenes."""
    shared = [(scene, fact) for scene in read_scenes() if not scene.held_out for fact in scene.facts]
    held_out = [(scene, fact) for scene in read_scenes() if scene.held_out for fact in scene.facts]
    held_out_size = round(size * HELD_OUT_SHARE) if part == UNSEEN_PART else 0
    dealt = _repeat_shuffled(shared, size - held_out_size, rng) + _repeat_shuffled(
        held_out, held_out_size, rng
    )
    rng.shuffle(dealt)
    return dealt


def _repeat_shuffled(
    facts: list[tuple[Scene, Fact]], size: int, rng: random.Random
) -> list[tuple[Scene, Fact]]:
    dealt: list[tuple[Scene, Fact]] = []
    while len(dealt) < size:
        dealt += rng.sample(facts, len(facts))
    return dealt[:size]


def _ask(scene: Scene, fact: Fact, part: str, rng: random.Random) -> AskedQuestion:
    values = _draw_values(scene, rng)
    phrasing = rng.choice(fact.seen_questions + (fact.unseen_questions if part == UNSEEN_PART else ()))
    right = [fill_slots(answer, values) for answer in _answers(fact, part)]
    elsewhere = [
        fill_slots(answer, values)
        for other in scene.facts
        if other is not fact
        for answer in _answers(other, part)
    ]
    twin_values = _draw_twin(scene, values, phrasing, rng)
    # Without its anchor, an answer about the twin would look like one about the scene itself.
    twin = [fill_slots(a, twin_values) for a in _answers(fact, part) if f"{{{scene.anchor}}}" in a]

    size = rng.randint(LEAST_CANDIDATES, MOST_CANDIDATES)
    chosen_right = rng.sample(right, rng.randint(1, MOST_RIGHT))
    chosen_twin = rng.sample(twin, min(len(twin), rng.randint(1, MOST_TWIN_ANSWERS)))
    chosen_elsewhere = rng.sample(elsewhere, size - len(chosen_right) - len(chosen_twin))
    candidates = [(text, 1) for text in chosen_right] + [(text, 0) for text in chosen_twin + chosen_elsewhere]
    rng.shuffle(candidates)
    return AskedQuestion(fill_slots(phrasing, values), tuple(candidates), phrasing, scene.name)


def _answers(fact: Fact, part: str) -> tuple[str, ...]:
    return fact.seen_answers + (fact.unseen_answers if part == UNSEEN_PART else ())


def _draw_values(scene: Scene, rng: random.Random) -> dict[str, str]:
    """Fill the slots of a scene; no two slots get the same value."""
    values = {slot: rng.choice(choices) for slot, choices in scene.choices.items()}
    for slot, kind in scene.kinds.items():
        values[slot] = draw_fresh_value(kind, list(values.values()), rng)
    return values


def _draw_twin(scene: Scene, values: dict[str, str], phrasing: str, rng: random.Random) -> dict[str, str]:
    """Return the scene at another place: the values that the question names stay, except the anchor."""
    twin = _draw_values(scene, rng)
    while twin[scene.anchor] == values[scene.anchor]:
        twin = _draw_values(scene, rng)
    named = [slot for slot in SLOT.findall(phrasing) if slot != scene.anchor]
    return twin | {slot: values[slot] for slot in named}
