"""No row disappears without a word: it is read, it is counted as bad, or the reading ends with an error."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers import lines
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.data.vectors import load_vectors
from nlpcapsule.errors import BadRowError, DataError

TEXTS = ReadOptions(need_labels=False)
SKIPPING = ReadOptions(skip_bad_rows=True)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


def test_a_line_of_labels_and_text_that_are_both_blank_is_a_row(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "x\tone\n\t\n \t \n\ty\n\n \n")
    report = ReadReport()
    found = list(read_documents(path, report=report))
    assert found == [Document("one", ("x",)), Document(""), Document(" "), Document("y")]
    assert (report.rows, report.unlabelled) == (4, 3)


def test_a_candidate_whose_cells_are_all_blank_is_a_row(tmp_path: Path) -> None:
    header = "qid\tquestion\tanswer\tlabel\n"
    path = write(tmp_path, "a.tsv", header + "1\tq\ta\t1\n\t\t\t\n\n")
    with pytest.raises(BadRowError, match=r"line 3: the label must be 0 or 1, found ''"):
        list(read_questions(path))
    report = ReadReport()
    assert len(list(read_questions(path, SKIPPING, report))) == 1
    assert report.bad_rows == 1


def test_a_blank_line_of_a_table_with_one_column_is_an_empty_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", '\ntext\none\n\n""\nfour\n')
    assert [document.text for document in read_documents(path, TEXTS)] == ["one", "", "", "four"]


def test_a_blank_line_of_a_table_with_two_columns_is_no_row(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "text,labels\none,x\n\ntwo,y\n")
    assert [document.text for document in read_documents(path)] == ["one", "two"]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["without a mark", "with a mark"])
@pytest.mark.parametrize("length", [46, 47, 48, 49, 50, 51, 52, 53, 54, 60])
def test_a_first_line_is_too_long_with_and_without_a_byte_order_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: bytes, length: int
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 50)
    path = write(tmp_path, "a.txt", mark + b"x" * length + b"\nsecond\n")
    report = ReadReport()
    options = ReadOptions(need_labels=False, skip_bad_rows=True)
    found = [document.text for document in read_documents(path, options, report)]
    assert found == (["x" * length, "second"] if length <= 50 else ["second"])
    assert report.bad_rows == (length > 50)


def test_the_rows_behind_a_broken_quote_are_read_if_the_row_ends_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'text,labels\none,x\n"he said "hi" and left",y\n"three",z\n')
    report = ReadReport()
    found = [document.text for document in read_documents(path, SKIPPING, report)]
    assert (found, report.bad_rows) == (["one", "three"], 1)


@pytest.mark.parametrize(
    "rows",
    [
        '"he said "hi"\nand left",y\nfour,z\n',  # the rest of the cell would be taken for a row
        '"never closed,y\nthree,z\n"four",z\n',  # the rows behind would be swallowed
        '"one\nand "two,y\nthree,z\n',
    ],
)
def test_a_broken_quote_ends_the_reading_if_the_end_of_its_row_is_unknown(tmp_path: Path, rows: str) -> None:
    path = write(tmp_path, "a.csv", "text,labels\none,x\n" + rows)
    with pytest.raises(DataError, match=r"a\.csv, line 3: the row cannot be split .* where it ends; fix its"):
        list(read_documents(path, SKIPPING))


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a", "A letter, text, and more\nsecond, line, here\n", "csv"),
        ("a", "id\ttext\n1\tone\n", "tsv"),
        ("a.txt", "before a tab\tbehind it\n", "labels-tab-text"),
        ("a", "plain words\n", "txt"),
    ],
)
def test_a_format_that_was_guessed_is_said(tmp_path: Path, name: str, content: str, format: str) -> None:
    said: list[str] = []
    path = write(tmp_path, name, content)
    list(
        read_documents(path, ReadOptions(need_labels=False, skip_bad_rows=True), ReadReport(say=said.append))
    )
    assert said == [f"{path}: read as {format}, by its first line; --format names another format"]


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.csv", "text\none\n", "auto"),
        ("a.txt", "one\n", "auto"),
        ("a", '{"text": "one"}\n', "auto"),
        ("a", "text\none\n", "csv"),
    ],
)
def test_a_format_that_the_name_or_the_user_tells_is_not_said(
    tmp_path: Path, name: str, content: str, format: str
) -> None:
    said: list[str] = []
    options = ReadOptions(need_labels=False, format=format)
    list(read_documents(write(tmp_path, name, content), options, ReadReport(say=said.append)))
    assert said == []


@pytest.mark.parametrize(
    "row", ['{"text": "a", "text": "b", "labels": []}', '{"text": "a", "labels": [{"b": 1, "b": 2}]}']
)
def test_a_repeated_json_key_is_a_bad_row(tmp_path: Path, row: str) -> None:
    path = write(tmp_path, "a.jsonl", row)
    with pytest.raises(
        BadRowError, match=r"a\.jsonl, line 1: the key '\w+' is repeated; keep one of the two"
    ):
        list(read_documents(path))


def test_the_first_word_of_a_vector_file_has_no_byte_order_mark(tmp_path: Path) -> None:
    for content in (b"\xef\xbb\xbfcat 1 2\ndog 3 4\n", b"\xef\xbb\xbf2 2\ncat 1 2\ndog 3 4\n"):
        for name, data in (("a.txt", content), ("a.txt.gz", gzip.compress(content))):
            matrix, _ = load_vectors(write(tmp_path, name, data), ["", "cat", "dog"])
            assert matrix[1:].tolist() == [[1, 2], [3, 4]]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
@pytest.mark.parametrize("format", ["auto", "jsonl", "csv", "txt", "labels-tab-text", "svmlight"])
def test_a_device_that_never_ends_is_refused(device: str, format: str) -> None:
    for skip_bad_rows in (False, True):
        options = ReadOptions(format=format, need_labels=False, skip_bad_rows=skip_bad_rows)
        with pytest.raises(DataError):
            for _ in read_documents(device, options):
                pass


def test_a_line_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1_000)
    monkeypatch.setattr(lines, "MAX_SKIPPED_BYTES", 200_000)
    path = write(tmp_path, "a.jsonl", b"x" * 1_000_000)
    with pytest.raises(DataError, match=r"a\.jsonl, line 1: the line does not end"):
        list(read_documents(path, SKIPPING))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("format", ["auto", "svmlight"])
def test_a_layout_of_several_files_is_not_read_from_a_pipe(tmp_path: Path, format: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = "2 3 4\n0 1:1\n1 2:1\n"
    writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
    writer.start()
    with pytest.raises(DataError, match=r"'svmlight' cannot be read from a pipe or a device; name a file"):
        list(read_documents(pipe, ReadOptions(format=format)))
    writer.join(300)
