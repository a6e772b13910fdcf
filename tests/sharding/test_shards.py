"""Rows are dealt to shards and joined in order; a prediction goes on with the shards it left."""

from __future__ import annotations

import json
import os
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError
from nlpcapsule.sharding import engines
from nlpcapsule.sharding.shards import Shards, find_shards, shard_folder, split_rows

IDENTITY = {"model": "one", "options": []}


def documents(count: int) -> list[Document]:
    return [Document(f"text {row}", (), str(row) if row % 2 else None) for row in range(count)]


def rank_as_is(shards: Shards, *numbers: int) -> None:
    """Use a shard's rows as its results."""
    for number in numbers or shards.unfinished:
        shards.results(number).write_bytes(shards.rows(number).read_bytes())


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 7))
def test_results_are_joined_in_the_order_of_the_rows(tmp_path_factory, count, wanted, chunk):
    output = tmp_path_factory.mktemp("shards") / "out.jsonl"
    shards = split_rows(documents(count), wanted, chunk, output, IDENTITY)
    assert shards.count == min(wanted, -(-count // chunk))
    rank_as_is(shards)
    shards.join(output)
    texts = [json.loads(line)["text"] for line in output.read_text().splitlines()]
    assert texts == [row.text for row in documents(count)]
    assert not shard_folder(output).exists()


def test_rows_of_a_shard_read_as_the_same_documents(tmp_path):
    rows = [Document("Zürich\nin \u2028 two lines", (), "a b"), Document(" blanks ", (), None)]
    shards = split_rows(rows, 1, 10, tmp_path / "out.jsonl", IDENTITY)
    options = ReadOptions(format="jsonl", need_labels=False)
    assert list(read_documents(str(shards.rows(0)), options)) == rows


def test_rows_of_a_shard_read_as_the_same_questions(tmp_path):
    rows = [Question("who?", (Candidate("me"), Candidate("you")), "7")]
    shards = split_rows(rows, 1, 10, tmp_path / "out.jsonl", IDENTITY)
    options = ReadOptions(format="jsonl", need_labels=False)
    assert list(read_questions(str(shards.rows(0)), options)) == rows


def test_finished_shards_are_kept(tmp_path):
    output = tmp_path / "out.jsonl"
    rank_as_is(split_rows(documents(10), 3, 2, output, IDENTITY), 1)
    found = find_shards(output, IDENTITY)
    assert found is not None
    assert found.unfinished == [0, 2]


def test_shards_of_another_prediction_are_refused(tmp_path):
    split_rows(documents(10), 3, 2, tmp_path / "out.jsonl", IDENTITY)
    with pytest.raises(NlpCapsuleError, match=r"other settings \(options\)"):
        find_shards(tmp_path / "out.jsonl", {**IDENTITY, "options": ["--top-k", "2"]})


def test_rows_without_a_manifest_are_split_again(tmp_path):
    output = tmp_path / "out.jsonl"
    shards = split_rows(documents(10), 3, 2, output, IDENTITY)
    (shards.folder / "manifest.json").unlink()
    assert find_shards(output, IDENTITY) is None
    assert not shards.folder.exists()


def test_a_killed_worker_is_started_again(tmp_path, monkeypatch):
    shards = split_rows(documents(10), 2, 2, tmp_path / "out.jsonl", IDENTITY)
    codes = iter([-9, -9, 0, 0])

    def command(*_: object) -> list[str]:
        return [
            sys.executable,
            "-c",
            f"import os; os.kill(os.getpid(), -{code})" if (code := next(codes)) else "",
        ]

    start = engines.Started.start
    monkeypatch.setattr(engines.Started, "start", lambda self, _: start(self, command()))
    engines.run_locally(shards, "model", [], lambda text: None)
    assert next(codes, None) is None


def test_the_error_of_a_worker_is_reported(tmp_path, monkeypatch):
    shards = split_rows(documents(10), 2, 2, tmp_path / "out.jsonl", IDENTITY)
    monkeypatch.setattr(engines, "_run", lambda *_: (2, "error: the model is damaged"))
    with pytest.raises(NlpCapsuleError, match=r"^the model is damaged$"):
        engines.run_locally(shards, "model", [], lambda text: None)


def test_a_prediction_that_is_stopped_does_not_wait_for_its_workers(tmp_path, monkeypatch):
    shards = split_rows(documents(10), 3, 2, tmp_path / "out.jsonl", IDENTITY)
    ended = tmp_path / "ended"
    waiting = [sys.executable, "-c", f"import time; time.sleep(8); open({str(ended)!r}, 'w')"]
    commands = iter([[sys.executable, "-c", ""], waiting, waiting])
    monkeypatch.setattr(engines, "thread_count", lambda: 3)
    monkeypatch.setattr(engines, "_command", lambda *_: next(commands))

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    before = set(psutil.Process().children())  # such as joblib's, of earlier tests
    with pytest.raises(KeyboardInterrupt):
        engines.run_locally(shards, "model", [], stop)
    assert set(psutil.Process().children()) <= before
    assert not ended.exists(), "a worker was waited for"


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 3},
        {"rows": [4, 4, -2]},
        {"rows": [4.0, 4, 2]},
        {"chunk": 0},
        {"chunk": -3},
        {"chunk": "2"},
        {"identity": []},
        {"identity": None},
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, change):
    output = tmp_path / "out.jsonl"
    shards = split_rows(documents(10), 3, 2, output, IDENTITY)
    record = json.loads((shards.folder / "manifest.json").read_text())
    (shards.folder / "manifest.json").write_text(json.dumps({**record, **change}))
    with pytest.raises(NlpCapsuleError, match="is damaged; remove"):
        find_shards(output, IDENTITY)


@pytest.mark.parametrize("change", ["cut", "emptied", "a row less", "a row more", "no text"])
def test_results_that_are_not_those_of_the_rows_lose_nothing(tmp_path, change):
    output = tmp_path / "out.jsonl"
    shards = split_rows(documents(10), 3, 2, output, IDENTITY)
    rank_as_is(shards)
    rows = shards.results(0).read_bytes()
    less, more = b"".join(rows.splitlines(True)[1:]), rows + b"{}\n"
    damaged = {
        "cut": rows[:-3],
        "emptied": b"",
        "a row less": less,
        "a row more": more,
        "no text": b"\xff\n" * 4,
    }
    shards.results(0).write_bytes(damaged[change])
    with pytest.raises(NlpCapsuleError, match=r"results-00000\.jsonl is damaged; remove it"):
        shards.join(output)
    assert not output.exists()
    shards.results(0).unlink()
    rank_as_is(shards)
    shards.join(output)
    assert len(output.read_text().splitlines()) == 10


def test_results_that_are_a_pipe_or_a_link_are_not_waited_for(tmp_path):
    shards = split_rows(documents(10), 3, 2, tmp_path / "out.jsonl", IDENTITY)
    os.mkfifo(shards.results(0))
    shards.results(1).symlink_to("/dev/zero")
    assert shards.unfinished == [0, 1, 2]


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_of_other_files_is_neither_used_nor_removed(tmp_path, is_link):
    output = tmp_path / "out.jsonl"
    folder = tmp_path / "mine" if is_link else shard_folder(output)
    folder.mkdir()
    (folder / "rows-00000.jsonl").write_text("")
    if is_link:
        shard_folder(output).symlink_to(folder)
    else:
        (folder / "precious.txt").write_text("mine")
    before = sorted(folder.iterdir())
    with pytest.raises(NlpCapsuleError, match="holds other files"):
        find_shards(output, IDENTITY)
    assert sorted(folder.iterdir()) == before
