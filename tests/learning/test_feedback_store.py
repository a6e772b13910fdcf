"""The feedback store: append-only, shared by threads and processes, erasable, and durable."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nlpcapsule.errors import DataError, NlpCapsuleError
from nlpcapsule.learning.store import FeedbackStore
from tests.cli.run_command import assert_refused, run_command


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "feedback.sqlite"


def bytes_of(path: Path) -> bytes:
    """All bytes of the database and the files that SQLite keeps with it."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def test_a_commit_waits_for_the_disk(path: Path) -> None:
    """A power cut cannot be tried: what SQLite is asked to do is checked."""
    with FeedbackStore(path) as store:
        asked = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete")
        }
    assert asked == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}


def test_rows_come_back_in_their_order_as_learn_reads_them(path: Path) -> None:
    with FeedbackStore(path) as store:
        assert store.add("a", "ada", "One\x00 <b>text</b>", ["x", "x", "ü"], ["y"]) == 1
        assert store.add("a", "bo", "One", [], ["x"]) == 2
    with FeedbackStore(path) as store:
        first, second = store.export()
        assert [row["row"] for row in store.export(after=1)] == [2]
    assert (first["id"], first["person"], first["text"]) == ("a", "ada", "One\x00 <b>text</b>")
    assert (first["labels"], first["rejected"]) == (["x", "ü"], ["y"])
    assert (second["labels"], second["rejected"]) == ([], ["x"])


def test_more_rows_than_are_read_at_a_time_are_exported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nlpcapsule.learning.store._CHUNK", 2)
    with FeedbackStore(path) as store:
        for number in range(5):
            store.add(str(number), "", "text", [], [])
        assert [row["id"] for row in store.export()] == list("01234")


def test_counts(path: Path) -> None:
    with FeedbackStore(path) as store:
        assert set(store.counts().values()) == {0}
        store.add("a", "ada", "One", ["x", "y"], ["z"])
        store.add("a", "bo", "One", ["x"], [])
        assert store.counts() == {"rows": 2, "documents": 1, "people": 2, "accepted": 3, "rejected": 1}


def test_what_cannot_be_stored_is_refused_or_replaced(path: Path) -> None:
    with FeedbackStore(path) as store:
        with pytest.raises(DataError, match="'x' is both accepted and rejected"):
            store.add("a", "ada", "One", ["x"], ["x"])
        with pytest.raises(DataError, match="no identifier"):
            store.add("", "ada", "One", ["x"], [])
        assert store.counts()["rows"] == 0
        store.add("a", "ada", "cut \ud83d off", ["\ud83d"], [])
        (row,) = store.export()
        assert (row["text"], row["labels"]) == ("cut \ufffd off", ["\ufffd"])


@pytest.mark.parametrize("by", ["document", "person"])
def test_erasing_leaves_no_byte_of_the_rows(path: Path, by: str) -> None:
    secret = "a secret sentence " * 300  # spans several pages
    with FeedbackStore(path) as store:
        store.add("kept", "bo", "harmless", ["x"], [])
        store.add("gone", "ada", secret, ["whispered-label"], [])
        assert b"a secret sentence" in bytes_of(path)
        assert store.erase(**{by: "gone" if by == "document" else "ada"}) == 1
        assert [row["id"] for row in store.export()] == ["kept"]
        left = bytes_of(path)
        assert b"secret sentence" not in left
        assert b"whispered" not in left
        assert store.add("later", "", "text", [], []) == 3, "numbers are not used again"


def test_erasing_a_persons_feedback_on_one_document_keeps_the_others(path: Path) -> None:
    with FeedbackStore(path) as store:
        for document in ("a", "b"):
            for person in ("ada", "bo"):
                store.add(document, person, "text", [], [])
        assert store.erase(document="a", person="ada") == 1
        assert store.counts()["rows"] == 3
        with pytest.raises(DataError, match="name the document or the person"):
            store.erase()


def test_threads_and_processes_add_to_the_same_file(path: Path) -> None:
    FeedbackStore(path).close()
    program = (
        "import sys; from nlpcapsule.learning.store import FeedbackStore\n"
        "store = FeedbackStore(sys.argv[1])\n"
        "for number in range(50): store.add(f'{sys.argv[2]}-{number}', 'process', 'text', [], [])"
    )
    others = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in ("p", "q")]
    with FeedbackStore(path) as store:

        def add_fifty(name: str) -> None:
            for number in range(50):
                store.add(f"{name}-{number}", "thread", "text", [], [])

        threads = [threading.Thread(target=add_fifty, args=(name,)) for name in ("t", "u")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [other.wait(300) for other in others] == [0, 0]
        documents = [row["id"] for row in store.export()]
    assert sorted(documents) == sorted(f"{name}-{number}" for name in "pqtu" for number in range(50))


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "a.txt", tmp_path / "b.sqlite", tmp_path / "c.sqlite"
    text.write_text("no database at all\n" * 100, encoding="utf-8")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE books (title)")
    connection.close()
    FeedbackStore(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    for path, message in {
        text: "is not a feedback store",
        other: "is a database, but no feedback store",
        newer: "format 9; this version reads up to 1",
    }.items():
        with pytest.raises(DataError, match=message):
            FeedbackStore(path)
    assert text.read_text(encoding="utf-8") == "no database at all\n" * 100


def test_the_commands_export_erase_and_count(path: Path, tmp_path: Path) -> None:
    with FeedbackStore(path) as store:
        store.add("a", "ada", "One", ["x"], ["y"])
        store.add("b", "bo", "Two", ["ü"], [])
    done = run_command("feedback", "export", path)
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["id"], row["labels"], row["rejected"]) for row in rows] == [
        ("a", ["x"], ["y"]),
        ("b", ["ü"], []),
    ]
    run_command("feedback", "export", path, "--output", tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_text(encoding="utf-8") == done.out
    assert run_command("feedback", "erase", path, "--person", "ada").out == "1 rows erased\n"
    assert json.loads(run_command("feedback", "stats", path).out)["rows"] == 1
    assert_refused(run_command("feedback", "stats", tmp_path / "none"), "there is no such feedback store")
    assert not (tmp_path / "none").exists()
    assert_refused(run_command("feedback", "export", path, "--output", path), "is the store itself")
    assert_refused(run_command("feedback", "erase", path), "name the document or the person")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("accepted", "no JSON"),
        ("accepted", '{"a": 1}'),
        ("accepted", "[1]"),
        ("rejected", "null"),
        ("rejected", "[" * 100_000),
        ("accepted", b"\xff"),
        ("text", b"\xff"),
    ],
)
def test_a_damaged_row_is_named(path: Path, column: str, value: object) -> None:
    with FeedbackStore(path) as store:
        store.add("a", "ada", "text", ["x"], [])
        store.add("b", "ada", "text", ["x"], [])
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE feedback SET {column} = ? WHERE id = 2", (value,))
    connection.close()
    with FeedbackStore(path) as store, pytest.raises(DataError, match=r"row 2 is damaged"):
        list(store.export())


def test_a_damaged_file_is_refused_or_works(path: Path) -> None:
    with FeedbackStore(path) as store:
        for number in range(30):
            store.add(f"d{number}", "ada", "some text " * 20, ["x"], ["y"])
    content, generator, refused = path.read_bytes(), random.Random("store"), 0
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(generator.choice([1, 5, 50])):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged[: generator.choice([len(damaged), generator.randrange(len(damaged))])])
        try:
            with FeedbackStore(path) as store:
                list(store.export())
                store.counts()
                store.erase(person="ada")
        except NlpCapsuleError:
            refused += 1
        for left in path.parent.glob(f"{path.name}*"):
            left.unlink()
    assert refused > 50
