"""A user's folder: parts and kind are found, the split is told, what cannot be compared on is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from compare_runs import letters, write_jsonl, write_letters

from nlpcapsule.compare.data import open_folder
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import NlpCapsuleError

READING = ReadOptions()


def test_train_dev_and_test_each_have_their_use(tmp_path: Path) -> None:
    source = open_folder(write_letters(tmp_path), READING)
    assert source.split == "trained on train.jsonl, selected on dev.jsonl, reported on test.jsonl"
    train, select, report = source.parts()
    assert (len(train), len(select), len(report)) == (48, 12, 16)
    assert select[0].text == letters(12, seed=12)[0]["text"]


def test_without_dev_a_tenth_of_train_is_selected_on(tmp_path: Path) -> None:
    (write_letters(tmp_path) / "dev.jsonl").unlink()
    source = open_folder(tmp_path, READING)
    assert source.split == (
        "trained on 90% of train.jsonl, selected on the other 10% (there is no dev file), "
        "reported on test.jsonl"
    )
    train, select, report = source.parts()
    assert (len(train), len(select), len(report)) == (43, 5, 16)
    assert {row.text for row in report} == {row["text"] for row in letters(16, seed=16)}
    assert source.parts() == (train, select, report), "the same split every time"


def test_without_test_dev_is_reported_on_and_not_selected_on(tmp_path: Path) -> None:
    (write_letters(tmp_path) / "test.jsonl").unlink()
    source = open_folder(tmp_path, READING)
    assert "selected on the other 10% (there is no test file), reported on dev.jsonl" in source.split
    _, select, report = source.parts()
    assert {row.text for row in report} == {row["text"] for row in letters(12, seed=12)}
    assert not {row.text for row in select} & {row.text for row in report}


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("train.jsonl", '{"text": "a", "labels": ["b"]}\n', "labels"),
        ("train.jsonl", '{"question": "a", "candidates": []}\n', "answers"),
        ("train.csv", "text,labels\na,b\n", "labels"),
        ("train.tsv", "qid\tquestion\tanswer\tlabel\n1\ta\tb\t1\n", "answers"),
        ("train.tsv", "QuestionID\tQuestion\tDocumentID\tSentence\tLabel\n", "answers"),
        ("train.txt", "b\ta question\n", "labels"),
    ],
)
def test_the_rows_tell_the_kind(name: str, text: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "test.jsonl").write_text("{}\n")
    assert open_folder(tmp_path, READING).kind == kind
    other = "answers" if kind == "labels" else "labels"
    assert open_folder(tmp_path, READING, other).kind == other


def test_files_may_be_gzipped(tmp_path: Path) -> None:
    plain, zipped = write_letters(tmp_path / "plain"), tmp_path / "zipped"
    zipped.mkdir()
    for path in plain.iterdir():
        (zipped / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert open_folder(zipped, READING).parts() == open_folder(plain, READING).parts()


def test_the_name_changes_with_the_rows_and_with_how_they_are_read(tmp_path: Path) -> None:
    source = open_folder(write_letters(tmp_path / "mine"), READING)
    first = source.name
    assert first.startswith("mine-")
    assert source.name == first
    assert open_folder(tmp_path / "mine", ReadOptions(skip_bad_rows=True)).name != first
    write_jsonl(tmp_path / "mine" / "dev.jsonl", letters(9))
    assert source.name != first


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no training file; expected train.jsonl and test.jsonl; it holds nothing"),
        ({"training.jsonl": "x"}, "it holds training.jsonl"),
        ({"train.jsonl": "x"}, "there is nothing to report on: no test and no dev file"),
        (
            {"train.jsonl": "x", "train.csv": "x", "test.csv": "x"},
            r"several files .*train\.jsonl, train\.csv",
        ),
    ],
)
def test_a_folder_without_the_parts_is_refused(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(NlpCapsuleError, match=message):
        open_folder(tmp_path, READING)


def test_bad_rows_are_counted_where_they_are_to_be_skipped(tmp_path: Path) -> None:
    (write_letters(tmp_path) / "dev.jsonl").unlink()
    write_jsonl(tmp_path / "train.jsonl", [*letters(20), {"txt": "a"}])
    with pytest.raises(NlpCapsuleError, match=r"train\.jsonl, line 21"):
        open_folder(tmp_path, READING).check()
    sizes, reports = open_folder(tmp_path, ReadOptions(skip_bad_rows=True)).check()
    assert sizes["bad rows left out"] == 1
    assert {path.name: (found.rows, found.bad_rows) for path, found in reports.items()} == {
        "train.jsonl": (20, 1),
        "test.jsonl": (16, 0),
    }


def test_too_few_rows_to_hold_any_out(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "train.jsonl", letters(1))
    write_jsonl(tmp_path / "test.jsonl", letters(4))
    with pytest.raises(NlpCapsuleError, match=r"train\.jsonl: 1 rows are too few .*give a dev file"):
        open_folder(tmp_path, READING).parts()
