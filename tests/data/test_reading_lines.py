"""Files as lines: encodings, gzip, limits, and where a problem is said to be."""

import gzip
import io
import sys
import tracemalloc
from pathlib import Path

import pytest

from nlpcapsule.data.readers import lines as lines_module
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.lines import Line, TextFile
from nlpcapsule.data.readers.reading import Place, ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError, DataError

ROW = b'{"text": "rain", "labels": ["weather"]}\n'


def all_lines(path: Path) -> list[Line | BadRowError]:
    with TextFile(path) as file:
        return list(file.lines())


def test_only_newlines_end_a_line_not_other_unicode_separators(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\u2028still one\x0bstill one\r\ntwo\n\nfour".encode())
    texts = ["one\u2028still one\x0bstill one", "two", "", "four"]
    assert all_lines(path) == [Line(Place(str(path), number), text) for number, text in enumerate(texts, 1)]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + ROW)
    assert [document.text for document in read_documents(path)] == ["rain"]


def test_peeking_does_not_consume_the_first_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    with TextFile(path) as file:
        assert file.peek() == "one"
        assert file.peek() == "one"
        assert [line.text for line in file.sound_lines()] == ["one", "two"]


def test_gzip_is_told_by_its_bytes_with_or_without_the_suffix(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(ROW * 3))
        assert len(list(read_documents(path))) == 3


def test_truncated_gzip_is_reported_as_broken(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(ROW * 1000)[:-20])
    with pytest.raises(DataError, match="gzip file is broken"):
        list(read_documents(path))


def test_corrupted_gzip_is_reported_as_broken(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    damaged = bytearray(gzip.compress(bytes(range(1, 256)) * 50))
    damaged[30:60] = b"\xff" * 30
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="gzip file is broken"):
        list(read_documents(path))


def test_a_plain_file_named_gz_is_refused(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(ROW)
    with pytest.raises(DataError, match="is no gzip file"):
        list(read_documents(path))


def test_latin1_names_line_and_conversion_and_can_be_skipped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROW + '{"text": "café", "labels": []}\n'.encode("latin-1") + ROW)
    with pytest.raises(BadRowError, match=r"line 2: byte 0xe9 .*iconv.*--skip-bad-rows"):
        list(read_documents(path))
    report = ReadReport()
    assert len(list(read_documents(path, ReadOptions(skip_bad_rows=True), report))) == 2
    assert report.bad_rows == 1


def test_wrong_encoding_inside_a_csv_ends_the_reading_even_when_skipping(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,labels\ngood,a\n"caf\n\xe9",b\nlast,c\n')
    with pytest.raises(DataError, match="line 4: byte 0xe9"):
        list(read_documents(path, ReadOptions(skip_bad_rows=True)))


def test_wrong_encoding_inside_a_csv_names_the_conversion_alone_since_no_row_can_be_skipped(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text,labels\n1,caf\xe9,dogs\n")
    with pytest.raises(DataError, match=r"line 2: byte 0xe9 .*with: iconv -f latin1 -t utf-8$"):
        list(read_documents(path))


def test_nul_bytes_mean_a_binary_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROW + b"\x00\x01\n")
    with pytest.raises(DataError, match=r"line 2: .*binary"):
        list(read_documents(path, ReadOptions(skip_bad_rows=True)))


def test_utf16_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "x", "labels": []}'.encode("utf-16"))
    with pytest.raises(DataError, match=r"UTF-16.*iconv -f utf-16"):
        list(read_documents(path))


def test_a_line_at_the_limit_is_read_and_one_above_is_a_bad_row(tmp_path, monkeypatch):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 10)
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 10 + b"\n" + b"b" * 11 + b"\n" + b"c" * 200_000 + b"\nlast")
    first, second, third, last = all_lines(path)
    assert first == Line(Place(str(path), 1), "a" * 10)
    assert isinstance(second, BadRowError)
    assert second.line == 2
    assert isinstance(third, BadRowError)
    assert "longer than 10 bytes" in third.problem
    assert last == Line(Place(str(path), 4), "last")


def test_a_50_mb_line_is_not_held_in_memory(tmp_path):
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(50):
            file.write(b"a" * 1_000_000)
    tracemalloc.start()
    try:
        (problem,) = all_lines(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(problem, BadRowError)
    assert peak < 3 * lines_module.MAX_LINE_BYTES


def test_missing_file_says_so(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.jsonl: there is no such file"):
        list(read_documents(tmp_path / "nowhere.jsonl"))


def test_unreadable_file_says_so(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(lines_module.io, "FileIO", refuse)
    with pytest.raises(DataError, match="cannot be opened \\(Permission denied\\)"):
        list(read_documents(tmp_path / "a.jsonl"))


def test_empty_file_says_so(tmp_path):
    for name, content in [("a.jsonl", b""), ("b", b""), ("c.jsonl", b"\n \n"), ("d.csv", b"text,labels\n")]:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match="there are no rows"):
            list(read_documents(path))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_read_plain_or_gzipped(monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(ROW * 2))))
    assert [document.labels for document in read_documents("-")] == [("weather",)] * 2


def test_errors_about_standard_input_name_it(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="<stdin>: it is empty"):
        list(read_documents("-"))
