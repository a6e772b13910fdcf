"""Format "auto": what a name, a first line or an option decides."""

import pytest

from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.formats import document_file_format, question_file_format
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions
from nlpcapsule.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("name", "first_line", "expected"),
    [
        ("a.jsonl", "anything", "jsonl"),
        ("a.json.gz", '{"text": "t"}', "jsonl"),
        ("a.JSONL.gz", "", "jsonl"),
        ("a.csv", "anything", "csv"),
        ("a.tsv.gz", "anything", "tsv"),
        ("a.txt", "a;b\ttext", "labels-tab-text"),
        ("a.txt.gz", "no tab", "txt"),
        ("trn.json.gz", '{"title": "t", "content": "c", "target_ind": [1]}', "extreme-text"),
        ("trn.raw.txt", "words", "extreme-text"),
        ("train.txt", "15539 5000 3993", "svmlight"),
        ("<stdin>", '{"text": "t"}', "jsonl"),
        ("<stdin>", "id\ttext\tlabels", "tsv"),
        ("<stdin>", '"text","labels"', "csv"),
        ("<stdin>", "a;b\tsome words, text", "labels-tab-text"),
    ],
)
def test_documents(name, first_line, expected):
    assert document_file_format(name, first_line, ReadOptions()) == expected


def test_a_chosen_text_key_overrules_the_look_of_an_extreme_row():
    row = '{"title": "t", "content": "c", "target_ind": [1]}'
    assert document_file_format("a.json", row, ReadOptions(text_key="content")) == "jsonl"


def test_a_stream_of_plain_lines_is_text_only_where_no_labels_are_needed():
    assert document_file_format("<stdin>", "just words", ReadOptions(need_labels=False)) == "txt"
    with pytest.raises(DataError, match=r"cannot be told.*--format: jsonl"):
        document_file_format("<stdin>", "just words", ReadOptions())


@pytest.mark.parametrize(
    ("name", "first_line", "expected"),
    [
        ("a.jsonl", "", "jsonl"),
        ("a.tsv", "qid\tquestion", "tsv"),
        ("<stdin>", '{"question": "q"}', "jsonl"),
        ("<stdin>", "qid\tquestion\tanswer", "tsv"),
    ],
)
def test_questions(name, first_line, expected):
    assert question_file_format(name, first_line) == expected


def test_questions_that_look_like_nothing_known():
    with pytest.raises(DataError, match=r"cannot be told.*tsv"):
        question_file_format("<stdin>", "just words")


def test_unknown_formats_get_a_suggestion():
    with pytest.raises(ConfigError, match=r"unknown format 'jsonlines'.*'jsonl'"):
        list(read_documents("a", ReadOptions(format="jsonlines")))
    with pytest.raises(ConfigError, match="unknown format 'svmlight'"):
        list(read_questions("a", ReadOptions(format="svmlight")))


def test_a_named_format_overrules_the_suffix(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('{"text": "t", "labels": ["a"]}\n')
    assert [d.labels for d in read_documents(path, ReadOptions(format="jsonl"))] == [("a",)]


@pytest.mark.parametrize("name", ["jsonl", "svmlight"])
def test_file_formats_do_not_take_folders(tmp_path, name):
    with pytest.raises(DataError, match="this is a folder, expected a file"):
        list(read_documents(tmp_path, ReadOptions(format=name)))
