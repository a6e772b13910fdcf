"""Read the hand-written wording: topics with their labels, scenes with their facts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from benchmarks.sample.slots import read_wording, wording_names


@dataclass(frozen=True, slots=True)
class Label:
    """A concept and its phrasings.

    Attributes:
        name: The label.
        topic: The name of its topic.
        weight: Its relative frequency.
        contrast: Labels of one contrast contradict each other and never share a letter.
        seen: Clauses that every part but test-unseen uses: lower case, no full stop.
        unseen: Clauses that only the part test-unseen uses.
    """

    name: str
    topic: str
    weight: int
    contrast: str
    seen: tuple[str, ...]
    unseen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """The subject of a letter; `asides` use the topic's words but carry no label."""

    name: str
    labels: tuple[Label, ...]
    asides: tuple[str, ...]
    joins_any_topic: bool


@dataclass(frozen=True, slots=True)
class LetterFrame:
    """The sentences around the labelled clauses of a letter."""

    greetings: tuple[str, ...]
    lead_ins: tuple[str, ...]
    fillers: tuple[str, ...]
    closings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that can be asked about a scene, and sentences that answer it."""

    name: str
    seen_questions: tuple[str, ...]
    unseen_questions: tuple[str, ...]
    seen_answers: tuple[str, ...]
    unseen_answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """A small world of facts; the answer to one fact is a wrong candidate for every other.

    Attributes:
        name: The name of the scene.
        anchor: The slot that distinguishes instances of the scene; every question names it.
        kinds: For a slot that is filled from the common lists, the kind of its values.
        choices: The values of slots that only this scene has.
        facts: The facts that can be asked about.
        held_out: Whether only the test part uses the scene.
    """

    name: str
    anchor: str
    kinds: dict[str, str]
    choices: dict[str, tuple[str, ...]]
    facts: tuple[Fact, ...]
    held_out: bool


@cache
def read_topics() -> tuple[Topic, ...]:
    """Return all topics, in the order of their names."""
    return tuple(_read_topic(name) for name in wording_names("topics"))


@cache
def read_labels() -> tuple[Label, ...]:
    """Return the labels of all topics."""
    return tuple(label for topic in read_topics() for label in topic.labels)


@cache
def read_letter_frame() -> LetterFrame:
    """Return greetings, lead-ins, fillers and closings."""
    wording = read_wording("letters.toml")
    return LetterFrame(**{part: tuple(phrasings) for part, phrasings in wording.items()})


@cache
def read_scenes() -> tuple[Scene, ...]:
    """Return all scenes, in the order of their names."""
    return tuple(_read_scene(name) for name in wording_names("scenes"))


def _read_topic(file_name: str) -> Topic:
    wording = read_wording(file_name)
    topic = PurePosixPath(file_name).stem
    labels = tuple(
        Label(
            name=name,
            topic=topic,
            weight=entry["weight"],
            contrast=entry.get("contrast", name),
            seen=tuple(entry["seen"]),
            unseen=tuple(entry["unseen"]),
        )
        for name, entry in wording["labels"].items()
    )
    return Topic(topic, labels, tuple(wording["asides"]), wording.get("joins_any_topic", False))


def _read_scene(file_name: str) -> Scene:
    wording = read_wording(file_name)
    slots = wording["slots"]
    facts = tuple(
        Fact(
            name=name,
            seen_questions=tuple(entry["questions"]["seen"]),
            unseen_questions=tuple(entry["questions"]["unseen"]),
            seen_answers=tuple(entry["answers"]["seen"]),
            unseen_answers=tuple(entry["answers"]["unseen"]),
        )
        for name, entry in wording["facts"].items()
    )
    return Scene(
        name=PurePosixPath(file_name).stem,
        anchor=wording["anchor"],
        kinds={slot: kind for slot, kind in slots.items() if isinstance(kind, str)},
        choices={slot: tuple(values) for slot, values in slots.items() if not isinstance(values, str)},
        facts=facts,
        held_out=wording.get("held_out", False),
    )
