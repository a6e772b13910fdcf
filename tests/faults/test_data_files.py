"""Damaged data files of every format: they are read, or refused in words; no row is lost without a word."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from text_faults import check, damaged

import benchmarks.published_layouts  # noqa: F401  # registers its readers
from nlpcapsule.compare.data import open_folder
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import NlpCapsuleError

LAW = {
    "celex_id": "39999R0001",
    "title": "Regulation on rain",
    "header": "THE COUNCIL",
    "recitals": "Whereas it rains,",
    "main_body": ["Article 1: Umbrellas."],
    "concepts": ["1234", "5678"],
}
STORY = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="{}">\n'
    "<DATE>26-FEB-1987</DATE>\n<TOPICS><D>cocoa</D><D>rain</D></TOPICS>\n<TEXT>&#2;\n"
    "<TITLE>SHOWERS &lt;X></TITLE>\n"
    "<DATELINE>SALVADOR -</DATELINE><BODY>Showers continued.\nReuter\n&#3;</BODY></TEXT>\n</REUTERS>\n"
)
QUESTION = {
    "id": "7",
    "question": "What keeps you dry?",
    "candidates": [{"text": "An umbrella.", "label": 1}],
}
PAIRS = (
    "<QApairs id='7'>\n<question>\nWhat\tkeeps\tyou\tdry\n</question>\n"
    "<positive>\nAn\tumbrella\n</positive>\n"
    "<negative>\nIt\twas\n</negative>\n</QApairs>\n"
)


def rows(*values: object) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


# Format → the files of a source; the first is what is read, or the folder if its name ends in a slash.
DOCUMENTS: dict[str, dict[str, str]] = {
    "jsonl": {
        "a.jsonl": rows(
            {"id": 1, "title": "Harvest", "text": "Rain häs kept", "labels": ["farming", "weather"]},
            {"text": "The rate stays", "labels": ["finance"]},
            {"text": "", "labels": None},
        )
    },
    "csv": {"a.csv": 'id,text,labels\n1,"Rain, in\nthe ""shed""",farming;weather\n2,The rate,finance\n3,,\n'},
    "tsv": {"a.tsv": "id\ttext\tlabels\n1\tRain in the shed\tfarming;weather\n2\t\t\n"},
    "one column": {"a.csv": "text\nRain\n\nThe rate\n"},
    "labels-tab-text": {"a.txt": "farming;weather\tRain in the shed\n\tnone\nfinance\tThe rate\n"},
    "txt": {"b": "Rain in the shed, text\nThe rate\n\nmore\n"},
    "eurlex57k": {"train/": "", "train/a.json": json.dumps(LAW, indent=1), "train/b.json": json.dumps(LAW)},
    "reuters21578": {"./": "", "reut2-000.sgm": "<!DOCTYPE lewis>\n" + STORY.format(1) + STORY.format(2)},
    "rcv1": {
        "./": "",
        "lyrl2004_tokens_train.dat": ".I 90001\n.W\nrain combin\nshed\n\n.I 90002\n.W\nrate stay\n",
        "rcv1-v2.topics.qrels": "C15 90001 1\nM11 90001 1\nC15 90002 1\n",
    },
    "extreme-text": {
        "./": "",
        "trn.json": rows({"uid": "p-1", "title": "Red umbrella", "content": "Dry", "target_ind": [0, 1]}),
        "lbl.json": rows({"title": "umbrella"}, {"title": "red"}),
    },
    "raw text": {
        "./": "",
        "trn.raw.txt": "Red umbrella\nLamp\n",
        "trn_X_Y.txt": "2 3\n0:1.0 2:1.0\n1:1.0\n",
        "Y.txt": "umbrella\nlamp\nred\n",
    },
    "svmlight": {"trn.txt": "2 9 3\n0,2 1:0.5 3:1.5\n1 2:1\n", "trn.raw.txt": "Red umbrella\nLamp\n"},
}
QUESTIONS: dict[str, dict[str, str]] = {
    "jsonl": {"q.jsonl": rows(QUESTION, {**QUESTION, "id": None, "candidates": ["x"]}, QUESTION)},
    "tsv": {
        "q.tsv": "qid\tquestion\tanswer\tlabel\n7\tWhat?\tAn umbrella\t1\n7\tWhat?\tno\t0\n8\tWho?\the\t1\n"
    },
    "trecqa": {"q.xml": PAIRS + PAIRS.replace("'7'", "'8'")},
    "wikiqa": {
        "./": "",
        "WikiQA-train.tsv": "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
        "Q1\tWhat?\tD1\tRain\tD1-0\tAn umbrella\t1\nQ1\tWhat?\tD1\tRain\tD1-1\tno\t0\n",
    },
}
OPTIONS = [
    ReadOptions(split="train"),
    ReadOptions(split="train", skip_bad_rows=True),
    ReadOptions(split="train", skip_bad_rows=True, need_labels=False),
]
PUBLISHED = ("eurlex57k", "reuters21578", "rcv1", "trecqa", "wikiqa")  # formats to be named
# Formats in which each line that is not blank is a row.
LINES = ("jsonl", "labels-tab-text", "txt")


def trials(files: dict[str, str], folder: Path, seed: str, count: int) -> Iterator[tuple[Path, Path, str]]:
    """Write the files with one of them damaged, again and again: the source, the file, the damage."""
    generator = random.Random(seed)
    source = folder / next(iter(files))
    contents = {folder / name: text.encode() for name, text in files.items() if not name.endswith("/")}
    for _ in range(count):
        victim = generator.choice(list(contents))
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path == victim:
                content, told = damaged(content, generator)
            path.write_bytes(content)
        yield source, victim, f"{victim.name}: {told}"


def read_all(read: Callable, source: Path, format: str) -> None:
    """Read in every way; what is refused in one may be read in another."""
    problem = None
    name = format if format in PUBLISHED else "auto"
    for options in (replace(options, format=name) for options in OPTIONS):
        try:
            for _ in read(source, options):
                pass
        except NlpCapsuleError as error:
            problem = error
    if problem is not None:
        raise problem


@pytest.mark.parametrize("format", DOCUMENTS)
def test_documents(format: str, tmp_path: Path, fault_count: int) -> None:
    for source, _, told in trials(DOCUMENTS[format], tmp_path, format, fault_count):
        check(partial(read_all, read_documents, source, format), told)


@pytest.mark.parametrize("format", QUESTIONS)
def test_questions(format: str, tmp_path: Path, fault_count: int) -> None:
    for source, _, told in trials(QUESTIONS[format], tmp_path, format, fault_count):
        check(partial(read_all, read_questions, source, format), told)


@pytest.mark.parametrize("format", LINES)
def test_every_line_is_read_or_counted(format: str, tmp_path: Path, fault_count: int) -> None:
    options = ReadOptions(format=format, skip_bad_rows=True, need_labels=False)
    compared = 0
    for source, victim, told in trials(DOCUMENTS[format], tmp_path, f"{format} lines", fault_count):
        report = ReadReport()
        try:
            for _ in read_documents(source, options, report):
                pass
        except NlpCapsuleError:
            continue
        lines = victim.read_bytes().removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
        expected = [line for line in lines if format == "txt" or is_filled(line, format)]
        assert report.rows + report.bad_rows == len(expected), told
        compared += 1
    assert compared > fault_count / 3


def is_filled(line: bytes, format: str) -> bool:
    return bool(line.decode(errors="replace").strip()) or (format == "labels-tab-text" and b"\t" in line)


@pytest.mark.parametrize("part", ["train", "dev"])
def test_a_folder_to_compare_on(part: str, tmp_path: Path, fault_count: int) -> None:
    files = {f"{name}.jsonl": DOCUMENTS["jsonl"]["a.jsonl"] for name in ("train", "dev", "test")}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    for _, _, told in trials({f"{part}.jsonl": files[f"{part}.jsonl"]}, tmp_path, part, fault_count):
        check(lambda: open_folder(tmp_path, ReadOptions()), told)
