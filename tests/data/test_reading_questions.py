"""Questions: TSV and JSONL."""

import io
import json
import sys

import pytest

from nlpcapsule.data.documents import Candidate, Question
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError, DataError

HEADER = "qid\tquestion\tanswer\tlabel\tsplit\n"


@pytest.fixture
def read(tmp_path):
    def write_and_read(
        name: str, content: str, report: ReadReport | None = None, **options
    ) -> list[Question]:
        path = tmp_path / name
        path.write_bytes(content.encode())
        return list(read_questions(path, ReadOptions(**options), report))

    return write_and_read


def test_tsv_groups_the_lines_of_a_question(read):
    report = ReadReport()
    content = HEADER + '1\tWho ?\t"Tom\t1\ttrain\n1\tWho ?\tA dog\t0\ttrain\n2\tWhat ?\tRain\t0\ttrain\n'
    assert read("a.tsv", content, report) == [
        Question("Who ?", (Candidate('"Tom', 1), Candidate("A dog", 0)), "1"),
        Question("What ?", (Candidate("Rain", 0),), "2"),
    ]
    assert (report.rows, report.unlabelled) == (2, 0)


def test_tsv_columns_may_stand_in_any_order_and_labels_be_absent(read):
    content = "answer\tqid\tquestion\nTom\t1\tWho ?\n"
    assert read("a.tsv", content, need_labels=False) == [Question("Who ?", (Candidate("Tom"),), "1")]
    with pytest.raises(DataError, match=r"line 1: .*no column 'label'"):
        read("a.tsv", content)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2\tq\ta\tyes\ttrain\n", r"line 3: the label must be 0 or 1, found 'yes'"),
        ("2\tq\ta\t\ttrain\n", r"line 3: the label must be 0 or 1, found ''"),
        ("2\tq\ta\n", r"line 3: expected 5 columns as in the header, found 3"),
        ("1\tanother\ta\t0\ttrain\n", r"line 3: question '1' has another text than in line 2"),
        ("2\tr\ta\t0\ttrain\n1\tq\ta\t0\ttrain\n", r"line 4: question '1' comes back"),
    ],
)
def test_bad_lines_are_named_and_can_be_skipped(read, line, message):
    content = HEADER + "1\tq\ta\t1\ttrain\n" + line
    with pytest.raises(BadRowError, match=message):
        read("a.tsv", content)
    report = ReadReport()
    questions = read("a.tsv", content, report, skip_bad_rows=True)
    assert questions[0] == Question("q", (Candidate("a", 1),), "1")
    assert report.bad_rows == 1


def test_jsonl(read):
    row = {
        "question": "Who?",
        "candidates": [{"text": "Tom", "label": 1}, {"text": "x", "label": 0}],
        "id": 4,
    }
    assert read("a.jsonl", json.dumps(row) + "\n") == [
        Question("Who?", (Candidate("Tom", 1), Candidate("x", 0)), "4")
    ]


def test_jsonl_candidates_may_be_plain_strings_where_no_labels_are_needed(read):
    content = '{"question": "Who?", "candidates": ["Tom", {"text": "Tim"}, {"text": "Ted", "label": "?"}]}\n'
    (question,) = read("a.jsonl", content, need_labels=False)
    assert question.candidates == (Candidate("Tom"), Candidate("Tim"), Candidate("Ted"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"candidates": []}', r"key 'question' is missing; the row has: 'candidates'"),
        ('{"question": "q"}', "key 'candidates' is missing"),
        ('{"question": "q", "candidates": []}', "has no candidates"),
        ('{"question": "q", "candidates": "a"}', "'candidates' must be a list, found a string"),
        ('{"question": "q", "candidates": ["a"]}', r"'candidates\[0\]' must be an object.*found a string"),
        ('{"question": "q", "candidates": [{"text": "a"}]}', "must be 0 or 1, found nothing"),
        ('{"question": "q", "candidates": [{"text": "a", "label": 2}]}', "must be 0 or 1, found 2"),
        ('{"question": "q", "candidates": [{"text": "a", "label": "1"}]}', "must be 0 or 1, found '1'"),
        ('{"question": "q", "candidates": [{"text": 1, "label": 1}]}', "must be a string, found a number"),
        ('{"question": ["q"], "candidates": [{"text": "a", "label": 1}]}', "'question' must be a string"),
    ],
)
def test_bad_jsonl_rows_are_named(read, line, message):
    with pytest.raises(BadRowError, match=rf"a\.jsonl, line 1: .*{message}.*--skip-bad-rows"):
        read("a.jsonl", line + "\n")


def test_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match="this is a folder, expected a file"):
        list(read_questions(tmp_path))


def test_empty_and_all_bad_files_are_errors(read):
    with pytest.raises(DataError, match="no rows"):
        read("a.tsv", HEADER)
    with pytest.raises(DataError, match="no rows"):
        read("plain", "")
    with pytest.raises(DataError, match="every row is bad"):
        read("a.tsv", HEADER + "x\n", skip_bad_rows=True)


def test_questions_from_standard_input(monkeypatch):
    content = (HEADER + "1\tq\ta\t1\tx\n").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert [q.id for q in read_questions("-")] == ["1"]
