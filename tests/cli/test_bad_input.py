"""Data that cannot be used: one message, exit code 2, and nothing is left behind."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from run_command import TINY, assert_refused, run_command

GOOD = b'{"text": "one good row", "labels": ["a"], "id": "1"}\n'
GOOD_QUESTION = (
    b'{"question": "who?", "candidates": [{"text": "he", "label": 1}, {"text": "it", "label": 0}]}\n'
)


# File name, contents and message. Readers are tested elsewhere; here, that their errors get to the user.
UNREADABLE = {
    "empty": ("a.jsonl", b"", r"a\.jsonl: it is empty: there are no rows; check"),
    "blank lines only": ("a.jsonl", b"\n \n", r"a\.jsonl: it is empty"),
    "latin-1": ("a.jsonl", GOOD + '{"text": "café"}'.encode("latin-1"), r"line 2: byte 0xe9.*iconv"),
    "latin-1 in a table": ("a.csv", b"text,labels\ncaf\xe9,a\n", r"line 2: byte 0xe9.*iconv -f latin1"),
    "UTF-16": (
        "a.jsonl",
        GOOD.decode().encode("utf-16"),
        r"a\.jsonl: it is encoded as UTF-16, expected UTF-8",
    ),
    "broken gzip": ("a.jsonl.gz", gzip.compress(GOOD * 99)[:-20], r"a\.jsonl\.gz: the gzip file is broken"),
    "gzip by name only": ("a.jsonl.gz", GOOD, r"it is named \.gz but is no gzip file"),
    "NUL bytes": ("a.jsonl", GOOD + b'{"text": "\0"}\n', r"a\.jsonl, line 2: it holds a NUL byte"),
    "a line of 50 MB": (
        "a.jsonl",
        GOOD + b"x" * 50_000_000,
        r"line 2: the line is longer than 10,000,000 bytes",
    ),
    "invalid JSON": ("a.jsonl", GOOD + b'{"text": "t", \n', r"a\.jsonl, line 2: invalid JSON"),
    "a JSON array": (
        "a.jsonl",
        b'[{"text": "t", "labels": []}]',
        r"line 1: expected a JSON object, found a list.*jq",
    ),
    "no text key": (
        "a.jsonl",
        b'{"body": "t", "labels": []}',
        r"line 1: the key 'text' is missing.*'body'.*--text-key",
    ),
    "a text that is no string": (
        "a.jsonl",
        b'{"text": 5, "labels": []}',
        r"line 1: 'text' must be a string, found a number",
    ),
    "no text column": (
        "a.csv",
        b"body,labels\nt,a\n",
        r"a\.csv, line 1: the header has no column 'text'.*--text-key",
    ),
    "a ragged row": ("a.csv", b"text,labels\nt,a\nt,a,b\n", r"a\.csv, line 3: expected 2 columns.*found 3"),
    "an open quote": (
        "a.csv",
        b'text,labels\n"t,a\n',
        r"a\.csv, line 2: a quote that is opened.*never closed",
    ),
    "a question": (
        "a.jsonl",
        GOOD_QUESTION,
        r"line 1: this is a question.*expected a document.*--task answers",
    ),
}
UNUSABLE_LABELS = {
    "no labels key": ("a.jsonl", b'{"text": "t", "tags": []}', r"the key 'labels' is missing.*--labels-key"),
    "labels as a string": ("a.jsonl", b'{"text": "t", "labels": "a;b"}', r"'labels' must be a list.*'a;b'"),
    "no labels column": ("a.csv", b"text,topics\nt,a\n", r"the header has no column 'labels'.*--labels-key"),
    "plain text": ("a.txt", b"words and words\n", r"a\.txt: a plain text file has no labels.*give a JSONL"),
    "no label in any row": (
        "a.jsonl",
        b'{"text": "t t", "labels": []}',
        r"a\.jsonl: no document has a label",
    ),
    "no telling format": (
        "a.dat",
        b"words\n",
        r"a\.dat: expected documents, and the format cannot be told.*--format",
    ),
}
UNREADABLE_QUESTIONS = {
    "empty": ("q.jsonl", b"", r"q\.jsonl: it is empty"),
    "documents": ("q.jsonl", GOOD, r'line 1: this is a document, expected \{"question": .*--task labels'),
    "a document table": (
        "q.csv",
        b"text,labels\nt,a\n",
        r"q\.csv: expected questions with candidate answers.*--format",
    ),
    "no candidates key": (
        "q.jsonl",
        b'{"question": "q"}',
        r"line 1: the key 'candidates' is missing.*expected",
    ),
    "no candidates": (
        "q.jsonl",
        b'{"question": "q", "candidates": []}',
        r"line 1: the question has no candidates",
    ),
    "a label that is not 0 or 1": (
        "q.jsonl",
        b'{"question": "q", "candidates": [{"text": "t", "label": 2}]}',
        r"line 1: the label of 'candidates\[0\]' must be 0 or 1, found 2",
    ),
    "a qid that comes back": (
        "q.tsv",
        b"qid\tquestion\tanswer\tlabel\n1\tq\ta\t1\n2\tr\ta\t1\n1\tq\tb\t0\n",
        r"q\.tsv, line 4: question '1' comes back",
    ),
    "no right candidate": (
        "q.jsonl",
        b'{"question": "q q", "candidates": [{"text": "t", "label": 0}]}',
        r"q\.jsonl: no (candidate is marked right|question has a right answer)",
    ),
}


def cases(table: dict[str, tuple[str, bytes, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "contents", "message"), table.values(), ids=table.keys())


@pytest.fixture
def file(tmp_path: Path, name: str, contents: bytes) -> Path:
    (tmp_path / name).write_bytes(contents)
    return tmp_path / name


@cases(UNREADABLE | UNUSABLE_LABELS)
def test_training_documents(file: Path, message: str, tmp_path: Path) -> None:
    assert_refused(run_command("train", file, "--output", tmp_path / "out", *TINY), message)
    assert not (tmp_path / "out").exists()


@cases(UNREADABLE | UNUSABLE_LABELS)
def test_documents_to_evaluate_on(file: Path, message: str, label_model: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    figures.write_text("older")
    assert_refused(run_command("evaluate", label_model, file, "--json", figures), message)
    assert figures.read_text() == "older"


@cases(UNREADABLE)
def test_documents_to_predict(file: Path, message: str, label_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "ranked.jsonl"
    assert_refused(run_command("predict", label_model, file, "--output", output), message)
    assert [path.name for path in tmp_path.iterdir()] == [file.name], "not even a part of the output is left"
    assert_refused(run_command("predict", label_model, file), message)


@cases(UNREADABLE_QUESTIONS)
def test_questions(file: Path, message: str, answer_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert_refused(run_command("train", file, "--task", "answers", "--output", out, *TINY), message)
    assert not out.exists()
    figures = tmp_path / "figures.json"
    assert_refused(run_command("evaluate", answer_model, file, "--json", figures), message)
    assert not figures.exists()


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "inspect"])
def test_a_missing_file_and_a_folder_that_is_no_data(command: str, label_model: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.md").write_text("no data")
    for source, message in [
        ("nowhere.jsonl", r"nowhere\.jsonl: there is no such file; check the path"),
        ("folder", r"folder: the folder is in no layout known here.*it holds: notes\.md"),
    ]:
        model = [] if command == "train" else [label_model]
        target = "--json" if command == "evaluate" else "--output"
        out = tmp_path / "out"
        assert_refused(run_command(command, *model, tmp_path / source, target, out), message)
        assert not out.exists()


def test_dev_data_that_cannot_select_an_epoch_are_refused_before_training(
    sample: Path, tmp_path: Path
) -> None:
    dev, out = tmp_path / "dev.jsonl", tmp_path / "out"
    message = r"dev\.jsonl: no document has a label that a training document has.*give other dev data"
    for labels in ["[]", '["never seen"]']:
        dev.write_text(f'{{"text": "t", "labels": {labels}}}\n')
        done = run_command("train", sample / "documents-train.jsonl", "--dev", dev, "--output", out, *TINY)
        assert_refused(done, message)
    dev.write_text('{"question": "q", "candidates": [{"text": "t", "label": 0}]}\n')
    questions = sample / "questions-train.jsonl"
    done = run_command("train", questions, "--task=answers", "--dev", dev, "--output", out, *TINY)
    assert_refused(done, r"dev\.jsonl: no candidate is marked right")
    assert not out.exists()


def test_labels_that_the_model_does_not_know(sample: Path, label_model: Path, tmp_path: Path) -> None:
    data, figures = tmp_path / "data.jsonl", tmp_path / "figures.json"
    data.write_bytes(b'{"text": "t", "labels": ["nonsense"]}\n')
    done = run_command("evaluate", label_model, data, "--json", figures)
    assert_refused(done, r"data\.jsonl: none of the labels is known.*'nonsense'.*trained on labels such as '")
    data.write_bytes((sample / "documents-train.jsonl").read_bytes() + data.read_bytes())
    done = run_command("evaluate", label_model, data, "--json", figures, "--strict-labels")
    assert_refused(done, r"data\.jsonl: 1 label.* not known to the model \(for example 'nonsense'\)")
    assert not figures.exists()
    assert run_command("evaluate", label_model, data).code == 0


def test_an_older_output_stays_when_a_row_half_way_is_bad(label_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(GOOD * 30 + b"no JSON\n")
    (tmp_path / "ranked.jsonl").write_text("older")
    done = run_command("predict", label_model, tmp_path / "in.jsonl", "--output", tmp_path / "ranked.jsonl")
    assert_refused(done, r"in\.jsonl, line 31: invalid JSON.*--skip-bad-rows")
    assert (tmp_path / "ranked.jsonl").read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "ranked.jsonl"]


def test_standard_input_is_named_in_messages(label_model: Path) -> None:
    assert_refused(run_command("predict", label_model, "-", stdin=b""), r"<stdin>: it is empty")
    unlabelled = b'{"text": "t", "labels": []}\n'
    assert_refused(
        run_command("evaluate", label_model, "-", stdin=unlabelled), r"<stdin>: no document has a label"
    )


def test_predicting_with_data_of_the_other_kind(label_model: Path, answer_model: Path, sample: Path) -> None:
    done = run_command("predict", label_model, sample / "questions-dev.jsonl")
    assert_refused(done, r"questions-dev\.jsonl, line 1: this is a question.*documents to a label model")
    done = run_command("predict", answer_model, sample / "documents-dev.jsonl")
    assert_refused(done, r"documents-dev\.jsonl, line 1: this is a document.*questions to an answer model")


def test_only_bad_rows_are_an_error_even_when_they_are_skipped(label_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("no\njson\n")
    done = run_command("predict", label_model, tmp_path / "in.jsonl", "--skip-bad-rows")
    assert_refused(done, r"every row is bad \(2 skipped\).*the first: .*in\.jsonl, line 1")


def test_a_long_path_with_brackets_is_neither_wrapped_nor_cut(label_model: Path, tmp_path: Path) -> None:
    path = tmp_path / ("[bold] " + "very-long-name-" * 10) / "[/x] nowhere.jsonl"
    assert_refused(run_command("predict", label_model, path), re.escape(f"{path}: there is no such file"))
