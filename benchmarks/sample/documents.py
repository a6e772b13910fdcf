"""Write the sample's letters: labelled clauses in new combinations, among unlabelled sentences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.sample.phrasings import Label, Topic, read_labels, read_letter_frame, read_topics
from benchmarks.sample.slots import LetterSlots

PART_SIZES = {"train": 1700, "dev": 250, "test-seen": 275, "test-unseen": 275}
UNSEEN_PART = "test-unseen"

LABEL_COUNTS = (1, 2, 3, 4, 5)
LABEL_COUNT_WEIGHTS = (22, 36, 25, 12, 5)
GENERAL_COMPANION_SHARE = 0.45  # probability that a further label comes from the general topic
ASIDE_SHARE = 0.5  # probability that an unlabelled sentence uses the words of a label
GREETING_SHARE = 0.6
CLOSING_SHARE = 0.5
LEAD_IN_SHARE = 0.15
LEAST_WORDS, MOST_TARGET_WORDS = 26, 52
REQUEST_OPENINGS = ("please ", "I hereby ")


@dataclass(frozen=True, slots=True)
class Letter:
    """A finished letter, with its clauses before their slots were filled."""

    text: str
    labels: tuple[str, ...]
    clauses: tuple[str, ...]


@cache
def write_letters(seed: int) -> dict[str, tuple[Letter, ...]]:
    """Write the letters of all parts; no text occurs twice."""
    written: set[str] = set()
    parts = {}
    for part, size in PART_SIZES.items():
        rng = random.Random(f"{seed}/documents/{part}")
        letters = []
        for main_label in _deal_main_labels(size, least=4 if part == "train" else 1, rng=rng):
            letter = _write_letter(main_label, part, rng)
            while letter.text in written:
                letter = _write_letter(main_label, part, rng)
            written.add(letter.text)
            letters.append(letter)
        parts[part] = tuple(letters)
    return parts


def _deal_main_labels(size: int, least: int, rng: random.Random) -> list[Label]:
    """Draw one label for each letter: every label at least `least` times, the rest by weight."""
    labels = read_labels()
    dealt = [label for label in labels for _ in range(least)]
    dealt += rng.choices(labels, [label.weight for label in labels], k=size - len(dealt))
    rng.shuffle(dealt)
    return dealt


def _write_letter(main_label: Label, part: str, rng: random.Random) -> Letter:
    topic = _topic_of_letter(main_label, rng)
    labels = _add_companions(main_label, topic, rng)
    rng.shuffle(labels)
    # The subject comes before remarks like "this is urgent"; the sort keeps the shuffled order otherwise.
    labels.sort(key=lambda label: label.topic != topic.name)
    clauses = [rng.choice(label.unseen if part == UNSEEN_PART else label.seen) for label in labels]
    text = _compose(clauses, topic, rng)
    return Letter(text, tuple(sorted(label.name for label in labels)), tuple(clauses))


def _general_topic() -> Topic:
    return next(topic for topic in read_topics() if topic.joins_any_topic)


def _topic_of_letter(main_label: Label, rng: random.Random) -> Topic:
    """Return the label's own topic, or any topic if the label may join all of them."""
    own = next(topic for topic in read_topics() if topic.name == main_label.topic)
    if not own.joins_any_topic:
        return own
    others = [topic for topic in read_topics() if not topic.joins_any_topic]
    return rng.choices(others, [sum(label.weight for label in topic.labels) for topic in others])[0]


def _add_companions(main_label: Label, topic: Topic, rng: random.Random) -> list[Label]:
    """Add labels that fit the main one: of its topic or the general one, without contradiction."""
    general = _general_topic()
    count = rng.choices(LABEL_COUNTS, LABEL_COUNT_WEIGHTS)[0]
    labels = [main_label]
    if main_label.topic == general.name:  # every letter has a subject
        labels.append(_draw_companion(topic, labels, rng))
    while len(labels) < count:
        source = general if rng.random() < GENERAL_COMPANION_SHARE else topic
        labels.append(_draw_companion(source, labels, rng))
    return labels


def _draw_companion(topic: Topic, labels: Sequence[Label], rng: random.Random) -> Label:
    contrasts = [label.contrast for label in labels]
    free = [label for label in topic.labels if label.contrast not in contrasts]
    return rng.choices(free, [label.weight for label in free])[0]


def _compose(clauses: Sequence[str], topic: Topic, rng: random.Random) -> str:
    """Combine clauses and unlabelled sentences to a letter of about 25 to 80 words."""
    frame = read_letter_frame()
    slots = LetterSlots(rng)
    sentences = _as_sentences([slots.fill(clause) for clause in clauses], rng)
    unlabelled = rng.sample(frame.fillers, len(frame.fillers))
    asides = rng.sample(topic.asides + _general_topic().asides, len(topic.asides))
    target = rng.randint(LEAST_WORDS, MOST_TARGET_WORDS)
    while _count_words(sentences) < target:
        source = asides if asides and rng.random() < ASIDE_SHARE else unlabelled
        sentences.insert(rng.randint(0, len(sentences)), _as_sentence(slots.fill(source.pop())))
    if rng.random() < GREETING_SHARE:
        sentences.insert(0, slots.fill(rng.choice(frame.greetings)))
    if rng.random() < CLOSING_SHARE:
        sentences.append(slots.fill(rng.choice(frame.closings)))
    return " ".join(sentences)


def _as_sentences(clauses: Sequence[str], rng: random.Random) -> list[str]:
    """Turn clauses into sentences; some statements, but not the first, get a lead-in."""
    sentences: list[str] = []
    for clause in clauses:
        if sentences and _is_statement(clause) and rng.random() < LEAD_IN_SHARE:
            clause = f"{rng.choice(read_letter_frame().lead_ins)} {clause}"
        sentences.append(_as_sentence(clause))
    return sentences


def _is_statement(clause: str) -> bool:
    return not clause.endswith("?") and not clause.startswith(REQUEST_OPENINGS)


def _as_sentence(clause: str) -> str:
    """Start with a capital and end with a mark; `capitalize` would lowercase the rest."""
    return clause[0].upper() + clause[1:] + ("" if clause.endswith("?") else ".")


def _count_words(sentences: Sequence[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)
