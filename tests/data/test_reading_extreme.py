"""The extreme classification repository: JSON rows, raw text joined with label files, svmlight."""

import gzip
import json

import pytest

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError, DataError


def read(path, report=None, **options):
    return list(read_documents(path, ReadOptions(**options), report))


@pytest.fixture
def json_rows(tmp_path):
    rows = [
        {
            "uid": "B0",
            "title": "Red shoe",
            "content": "Size 9.",
            "target_ind": [0, 2],
            "target_rel": [1.0, 1.0],
        },
        {"uid": "B1", "title": "Lamp", "content": "", "target_ind": []},
    ]
    with gzip.open(tmp_path / "trn.json.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def name_labels(folder, *titles):
    with gzip.open(folder / "lbl.json.gz", "wt") as file:
        file.writelines(json.dumps({"uid": "L", "title": title}) + "\n" for title in titles)


def test_json_rows_with_numbered_labels(json_rows):
    assert read(json_rows) == [Document("Red shoe\nSize 9.", ("0", "2"), "B0"), Document("Lamp", (), "B1")]


def test_json_rows_file_is_recognised_by_its_keys(json_rows):
    assert read(json_rows / "trn.json.gz") == read(json_rows)


def test_json_rows_with_named_labels(json_rows):
    name_labels(json_rows, "Shoes", "Lamps", "Red things")
    assert read(json_rows)[0].labels == ("Shoes", "Red things")


def test_labels_with_the_same_name_stay_different(json_rows):
    name_labels(json_rows, "Shoes", "", "Shoes")
    assert read(json_rows)[0].labels == ("Shoes", "Shoes #2")


def test_a_label_beyond_the_file_of_names_is_a_bad_row(json_rows):
    name_labels(json_rows, "Shoes")
    with pytest.raises(BadRowError, match=r"line 1: label 2 is not among the 1"):
        read(json_rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"title": "x", "target_ind": ["a"]}, "'target_ind' must be a list of whole numbers"),
        ({"title": "x", "target_rel": [1.0]}, "'target_ind' .*is missing"),
        ({"uid": "x", "target_ind": [1]}, "neither 'title' nor 'content'"),
    ],
)
def test_bad_json_rows_are_named(tmp_path, row, message):
    (tmp_path / "tst.json").write_text(json.dumps(row) + "\n")
    with pytest.raises(BadRowError, match=rf"tst\.json, line 1: .*{message}"):
        read(tmp_path, split="test")


def test_train_and_test_must_be_chosen_between(json_rows):
    (json_rows / "tst.json").write_text(json.dumps({"title": "t", "target_ind": [1]}) + "\n")
    with pytest.raises(DataError, match="--split: train, test, all"):
        read(json_rows)
    assert read(json_rows, split="test") == [Document("t", ("1",))]


@pytest.fixture
def raw_text(tmp_path):
    (tmp_path / "trn.raw.txt").write_text("first text\nsecond\nthird\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trn_X_Y.txt", "3 9\n1:1.0 7:1.0\n\n3:1.0\n"),
        ("trn_labels.txt", "1 7\n\n3\n"),
        ("Y.trn.txt", "1 7\n\n3\n"),
        ("trn.txt", "3 100 9\n1,7 5:0.1 6:0.2\n 8:0.5\n3 1:1\n"),
    ],
)
def test_raw_text_is_joined_with_each_kind_of_label_file(raw_text, name, content):
    (raw_text / name).write_text(content)
    expected = [Document("first text", ("1", "7")), Document("second"), Document("third", ("3",))]
    assert read(raw_text) == expected
    assert read(raw_text / "trn.raw.txt") == expected


def test_label_names_from_y_txt(raw_text):
    (raw_text / "trn_X_Y.txt").write_text("3 2\n0:1\n1:1\n0:1 1:1\n")
    (raw_text / "Y.txt").write_text("agriculture\ntrade policy\n")
    assert [d.labels for d in read(raw_text)] == [
        ("agriculture",),
        ("trade policy",),
        ("agriculture", "trade policy"),
    ]


def test_svmlight_file_takes_its_text_from_beside_it(raw_text):
    (raw_text / "trn.txt").write_text("3 100 9\n1,7 5:0.1\n2 8:0.5\n3 1:1\n")
    assert [d.labels for d in read(raw_text / "trn.txt")] == [("1", "7"), ("2",), ("3",)]


def test_svmlight_file_alone_is_refused_with_an_explanation(tmp_path):
    (tmp_path / "train.txt").write_text("1 100 9\n1,7 5:0.1\n")
    with pytest.raises(DataError, match=r"text cannot be restored.*train\.raw\.txt"):
        read(tmp_path / "train.txt")


def test_missing_label_file_is_named_unless_no_labels_are_needed(raw_text):
    with pytest.raises(DataError, match=r"labels is missing.*trn_X_Y\.txt"):
        read(raw_text)
    assert [d.text for d in read(raw_text, need_labels=False)] == ["first text", "second", "third"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3 9\n1:1\n2:1\n", r"trn_X_Y\.txt: the header promises 3 lines, found 2"),
        ("3 9\n1:1\n2:1\n3:1\n4:1\n", r"trn\.raw\.txt: it has fewer lines"),
        ("9\n1:1\n2:1\n3:1\n", r"trn_X_Y\.txt, line 1: expected a header"),
        ("3 9\n1:1\nx:1\n3:1\n", r"trn_X_Y\.txt, line 3: expected a label's number, found 'x'"),
    ],
)
def test_label_files_that_do_not_fit_are_named(raw_text, content, message):
    (raw_text / "trn_X_Y.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read(raw_text)


def test_fewer_label_lines_than_texts_is_an_error(raw_text):
    (raw_text / "trn_labels.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"trn_labels\.txt: it has fewer lines than"):
        read(raw_text)


def test_a_bad_text_line_is_skipped_together_with_its_labels(raw_text):
    (raw_text / "trn.raw.txt").write_bytes(b"first\nsec\xffond\nthird\n")
    (raw_text / "trn_labels.txt").write_text("a\nb\nc\n")
    report = ReadReport()
    assert read(raw_text, report, skip_bad_rows=True) == [
        Document("first", ("a",)),
        Document("third", ("c",)),
    ]
    assert report.bad_rows == 1
