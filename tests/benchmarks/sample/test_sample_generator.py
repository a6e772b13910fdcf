"""The generator of the sample: what it writes, and that unseen phrasings stay unseen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.sample.__main__ import generate_sample
from benchmarks.sample.documents import write_letters
from benchmarks.sample.phrasings import read_labels, read_scenes
from benchmarks.sample.questions import ask_questions
from benchmarks.sample.slots import SLOT
from nlpcapsule.sample import DOCUMENT_PARTS, FOLDER, load_documents

PARTS_WITHOUT_UNSEEN = ("train", "dev", "test-seen")


def pattern_of(phrasing: str) -> re.Pattern[str]:
    """A phrasing as it may occur in a text, whatever fills its slots."""
    fixed = [re.escape(text) for text in SLOT.split(phrasing)[::2]]
    return re.compile(r"[\w ,.:'&-]{1,40}?".join(fixed), re.IGNORECASE)


def test_the_files_of_the_package_are_what_it_writes_in_any_process(tmp_path: Path) -> None:
    """Another process with another hash seed: no set's order may leak into the sample."""
    code = "import sys; from pathlib import Path; from benchmarks.sample.__main__ import generate_sample; "
    code += "generate_sample(Path(sys.argv[1]))"
    environment = os.environ | {
        "PYTHONHASHSEED": "12345",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment)
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == sorted(path.name for path in FOLDER.glob("*.jsonl"))
    for path in written:
        assert path.read_bytes() == (FOLDER / path.name).read_bytes(), path.name


def test_another_seed_yields_other_files(tmp_path: Path) -> None:
    generate_sample(tmp_path, seed=7)
    for path in tmp_path.iterdir():
        assert path.read_bytes() != (FOLDER / path.name).read_bytes(), path.name


def test_unseen_phrasings_occur_in_no_other_part() -> None:
    unseen = {phrasing for label in read_labels() for phrasing in label.unseen}
    letters = write_letters(2019)
    for part in PARTS_WITHOUT_UNSEEN:
        assert not unseen.intersection(clause for letter in letters[part] for clause in letter.clauses)
    assert unseen.issuperset(clause for letter in letters["test-unseen"] for clause in letter.clauses)


def test_unseen_phrasings_cannot_be_found_in_the_text_of_other_parts() -> None:
    text = "\n".join(document.text for part in PARTS_WITHOUT_UNSEEN for document in load_documents(part))
    unseen_text = "\n".join(document.text for document in load_documents("test-unseen"))
    patterns = [pattern_of(phrasing) for label in read_labels() for phrasing in label.unseen][::10]
    assert not any(pattern.search(text) for pattern in patterns)
    # The same search does find them where they belong.
    assert sum(bool(pattern.search(unseen_text)) for pattern in patterns) > len(patterns) / 2


def test_seen_test_letters_combine_known_clauses_in_new_ways() -> None:
    letters = write_letters(2019)
    known = {clause for letter in letters["train"] for clause in letter.clauses}
    clauses = [clause for letter in letters["test-seen"] for clause in letter.clauses]
    assert sum(clause in known for clause in clauses) > 0.95 * len(clauses)


def test_contradicting_labels_never_share_a_letter() -> None:
    contrast = {label.name: label.contrast for label in read_labels()}
    for part in DOCUMENT_PARTS:
        for document in load_documents(part):
            contrasts = [contrast[label] for label in document.labels]
            assert len(set(contrasts)) == len(contrasts), document.text


def test_test_part_asks_partly_about_unseen_scenes_and_in_unseen_words() -> None:
    asked = ask_questions(2019)
    train_scenes = {question.scene for question in asked["train"] + asked["dev"]}
    train_phrasings = {question.phrasing for question in asked["train"] + asked["dev"]}
    held_out = {scene.name for scene in read_scenes() if scene.held_out}
    assert not train_scenes & held_out
    new_scene = [question for question in asked["test"] if question.scene in held_out]
    new_words = [q for q in asked["test"] if q.scene not in held_out and q.phrasing not in train_phrasings]
    assert len(new_scene) == 25
    assert len(new_words) >= 8
