"""JSONL, CSV, TSV, labels-tab-text and plain text: what is read and what is refused."""

import json

import pytest

from nlpcapsule.data.documents import Document
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError, ConfigError, DataError


@pytest.fixture
def read(tmp_path):
    """Writes a file and reads it back: `read(name, content, **options)`."""

    def write_and_read(
        name: str, content: str, report: ReadReport | None = None, **options
    ) -> list[Document]:
        path = tmp_path / name
        path.write_bytes(content.encode())
        return list(read_documents(path, ReadOptions(**options), report))

    return write_and_read


def jsonl(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_jsonl_gives_text_labels_and_id(read):
    assert read("a.jsonl", jsonl({"text": "rain", "labels": ["x", "y"], "id": "d1"})) == [
        Document("rain", ("x", "y"), "d1")
    ]


def test_numbers_become_strings_and_repeated_labels_are_merged(read):
    (document,) = read("a.jsonl", jsonl({"text": "t", "labels": [7, "7", "b", 7, 1.5], "id": 12}))
    assert document == Document("t", ("7", "b", "1.5"), "12")


def test_title_becomes_the_first_line_unless_the_text_starts_with_it(read):
    documents = read(
        "a.jsonl",
        jsonl(
            {"title": "Rain", "text": "It pours.", "labels": []},
            {"title": "Rain", "text": "Rain\nIt pours.", "labels": []},
            {"title": "Rain", "text": "", "labels": []},
            {"title": None, "text": "No title", "labels": []},
        ),
    )
    assert [d.text for d in documents] == ["Rain\nIt pours.", "Rain\nIt pours.", "Rain", "No title"]


def test_keys_can_be_chosen(read):
    row = {"body": "t", "topics": ["a"], "key": "k", "headline": "h"}
    (document,) = read(
        "a.jsonl",
        jsonl(row),
        text_key="body",
        labels_key="topics",
        id_key="key",
        title_key="headline",
    )
    assert document == Document("h\nt", ("a",), "k")


def test_documents_without_labels_and_blank_documents_are_kept_and_counted(read):
    report = ReadReport()
    rows = jsonl({"text": "", "labels": ["a"]}, {"text": "t", "labels": []}, {"text": "u", "labels": None})
    documents = read("a.jsonl", rows, report)
    assert [d.text for d in documents] == ["", "t", "u"]
    assert (report.rows, report.unlabelled, report.bad_rows) == (3, 2, 0)


def test_half_a_surrogate_pair_becomes_the_replacement_character(read):
    (document,) = read("a.jsonl", '{"text": "cut \\ud83d off \\ud83d\\ude00", "labels": ["\\udc00x"]}\n')
    assert document.text == "cut \ufffd off \U0001f600"
    assert document.labels == ("\ufffdx",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "t", "labels": [', "invalid JSON"),
        ('["text"]', r"expected a JSON object, found a list.*jq"),
        ('"text"', "expected a JSON object, found a string"),
        ("[" * 100_000, "invalid JSON"),
        ('{"text": "t", "labels": [' + "9" * 5000 + "]}", "invalid JSON"),
        ('{"body": "t", "labels": []}', r"key 'text' is missing.*'body', 'labels'.*--text-key"),
        ('{"text": "t", "tags": []}', r"key 'labels' is missing.*'text', 'tags'.*--labels-key"),
        ('{"text": 5, "labels": []}', "'text' must be a string, found a number"),
        ('{"text": null, "labels": []}', "'text' must be a string, found null"),
        ('{"text": "t", "labels": "a;b"}', r"must be a list of strings, found the string 'a;b'"),
        ('{"text": "t", "labels": {"a": 1}}', "must be a list of strings, found an object"),
        ('{"text": "t", "labels": [["a"]]}', r"'labels\[0\]' must be a string or a number, found a list"),
        ('{"text": "t", "labels": [true]}', "found a boolean"),
        ('{"text": "t", "labels": [" "]}', "blank label"),
        ('{"text": "t", "labels": [], "id": {}}', "'id' must be a string or a number"),
        ('{"text": "t", "labels": [], "title": 3}', "'title' must be a string"),
    ],
)
def test_bad_json_rows_name_file_line_and_way_out(read, line, message):
    good = jsonl({"text": "t", "labels": ["a"]})
    with pytest.raises(BadRowError, match=rf"a\.jsonl, line 2: .*{message}") as caught:
        read("a.jsonl", good + line + "\n" + good)
    assert "--skip-bad-rows" in str(caught.value)
    report = ReadReport()
    assert len(read("a.jsonl", good + line + "\n" + good, report, skip_bad_rows=True)) == 2
    assert report.bad_rows == 1
    assert "line 2" in report.examples[0]


def test_nothing_but_bad_rows_is_an_error_even_when_skipping(read):
    with pytest.raises(DataError, match=r"every row is bad \(2 skipped\).*line 1"):
        read("a.jsonl", "x\ny\n", skip_bad_rows=True)


def test_a_report_used_for_two_files_does_not_hide_that_the_second_is_empty(read):
    report = ReadReport()
    read("a.jsonl", jsonl({"text": "t", "labels": []}), report)
    with pytest.raises(DataError, match="no rows"):
        read("b.jsonl", "", report)


def test_labels_may_be_missing_where_none_are_needed(read):
    assert read("a.jsonl", jsonl({"text": "t"}), need_labels=False) == [Document("t")]
    assert read("a.csv", "text\nt\n", need_labels=False) == [Document("t")]


def test_csv_cells_may_hold_delimiters_quotes_and_newlines(read):
    content = 'id,text,labels\r\n1,"a, ""b""\nc",x; y;;x\r\n\r\n2,plain,\r\n'
    assert read("a.csv", content) == [Document('a, "b"\nc', ("x", "y"), "1"), Document("plain", (), "2")]


def test_csv_cells_may_be_longer_than_the_csv_modules_limit(read):
    (document,) = read("a.csv", "text,labels\n" + "a" * 200_000 + ",x\n")
    assert len(document.text) == 200_000


def test_tsv_columns_and_label_separator_can_be_chosen(read):
    (document,) = read(
        "a.tsv", "topic\tbody\nx|y z\thello\n", text_key="body", labels_key="topic", label_separator="|"
    )
    assert document == Document("hello", ("x", "y z"))


def test_an_empty_label_separator_is_refused(read):
    with pytest.raises(ConfigError, match="--label-separator"):
        read("a.csv", "text,labels\nt,x\n", label_separator="")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "body,labels\nt,x\n", r"line 1: .*no column 'text'.*'body', 'labels'.*--text-key"),
        ("a.tsv", "text\tbody\nt\tx\n", r"line 1: .*no column 'labels'.*--labels-key"),
        ("a.csv", '"text"s,labels\nt,x\n', "header is unusable"),
        ("a.csv", "text,text,labels\nt,u,x\n", "column 'text' twice"),
        ("a.csv", "text,labels\nt,x\nonly\n", r"line 3: expected 2 columns as in the header, found 1"),
        ("a.csv", 'text,labels\n"a\nb\nc",x\nt,x,y\n', r"line 5: expected 2 columns.*found 3"),
        ("a.csv", 'text,labels\nt,x\n"never closed,x\nmore,y\n', r"line 3: a quote .*is never closed"),
        ("a.tsv", 'text\tlabels\n"Go" she said\tx\n', r"line 2: .*cannot be split into cells.*double"),
    ],
)
def test_table_errors_name_line_and_way_out(read, name, content, message):
    with pytest.raises(DataError, match=message):
        read(name, content)


def test_asked_for_columns_must_be_there(read):
    with pytest.raises(DataError, match=r"no column 'headline'.*--title-key"):
        read("a.csv", "text,labels\nt,x\n", title_key="headline")


def test_rows_behind_a_bad_csv_row_are_still_read(read):
    report = ReadReport()
    documents = read("a.csv", "text,labels\na,x\nb\nc,y\n", report, skip_bad_rows=True)
    assert [d.text for d in documents] == ["a", "c"]
    assert report.bad_rows == 1


def test_rows_behind_a_badly_quoted_row_are_still_read(read):
    report = ReadReport()
    content = 'text\tlabels\n"Go" she said\tx\nb\ty\n'
    assert read("a.tsv", content, report, skip_bad_rows=True) == [Document("b", ("y",))]
    assert report.bad_rows == 1


def test_a_quote_that_is_never_closed_is_not_skipped_with_all_that_follows(read):
    with pytest.raises(DataError, match=r"line 3: .*never closed"):
        read("a.csv", 'text,labels\na,x\n"b,y\nc,z\n', skip_bad_rows=True)


def test_labels_tab_text(read):
    documents = read("a.txt", 'x;y\t"quoted" and\ttabbed\n\ttext only\n')
    assert documents == [Document('"quoted" and\ttabbed', ("x", "y")), Document("text only")]


def test_labels_tab_text_without_tab_is_a_bad_row(read):
    with pytest.raises(BadRowError, match=r"line 2: .*there is no tab"):
        read("a.txt", "x\ttext\nno tab here\n")


def test_plain_text_keeps_every_line_in_its_place(read):
    documents = read("a.txt", "one\n\nthree\n", need_labels=False)
    assert [d.text for d in documents] == ["one", "", "three"]


def test_plain_text_is_refused_where_labels_are_needed(read):
    with pytest.raises(DataError, match="has no labels"):
        read("a.txt", "one\ntwo\n")


def test_reading_streams_and_stops_where_the_caller_stops(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(jsonl({"text": "t", "labels": []}) + "broken\n")
    assert next(read_documents(path)) == Document("t")


def test_report_in_words():
    report = ReadReport()
    for line in range(1, 8):
        report.add_bad_row(BadRowError("broken", "a.jsonl", line, "hint"))
    report.rows, report.unlabelled = 1200, 3
    summary = report.summary().splitlines()
    assert summary[0] == "1,200 rows read, 3 of them without labels; 7 bad rows skipped"
    assert summary[1] == "  a.jsonl, line 1: broken"
    assert summary[-1] == "  and 2 more"
    assert len(summary) == 7
