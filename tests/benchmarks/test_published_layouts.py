"""Published layouts, on small files made up in their form."""

import gzip
import io
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks import published_layouts
from nlpcapsule.data.documents import Candidate, Document, Question
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.question_files import read_questions
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError, DataError


def read(path, report=None, **options):
    return list(read_documents(path, ReadOptions(**options), report))


read_eurlex, read_reuters, read_rcv1 = (
    partial(read, format=name) for name in ("eurlex57k", "reuters21578", "rcv1")
)


def law(identifier, **changes):
    row = {
        "celex_id": identifier,
        "uri": "somewhere",
        "type": "Regulation",
        "title": f"On {identifier}",
        "header": "THE COUNCIL",
        "recitals": ",\nWhereas",
        "main_body": ["Article 1", "Article 2"],
        "concepts": ["12", "34"],
    }
    return json.dumps(row | changes, indent=2)


@pytest.fixture
def eurlex(tmp_path):
    for part, names in {"train": ["b", "a"], "dev": ["c"], "test": ["d"]}.items():
        (tmp_path / part).mkdir()
        for name in names:
            (tmp_path / part / f"{name}.json").write_text(law(name))
    return tmp_path


def test_eurlex57k_reads_a_part_in_the_order_of_file_names(eurlex):
    documents = read_eurlex(eurlex, split="train")
    assert [d.id for d in documents] == ["a", "b"]
    assert documents[0] == Document("On a\nTHE COUNCIL\n,\nWhereas\nArticle 1\nArticle 2", ("12", "34"), "a")


def test_eurlex57k_part_folder_can_be_named_itself(eurlex):
    assert [d.id for d in read_eurlex(eurlex / "dev")] == ["c"]


def test_eurlex57k_one_file_and_a_body_that_is_one_string(eurlex):
    path = eurlex / "one.json"
    path.write_text(law("one", main_body="Only article", title="", header=None))
    assert read_eurlex(path) == [Document(",\nWhereas\nOnly article", ("12", "34"), "one")]


def test_a_layout_with_parts_is_not_read_whole_unless_asked(eurlex):
    with pytest.raises(DataError, match=r"train, dev, test.*--split"):
        read_eurlex(eurlex)
    assert [d.id for d in read_eurlex(eurlex, split="all")] == ["a", "b", "c", "d"]


def test_an_unknown_part_is_refused_with_the_known_ones(eurlex):
    with pytest.raises(DataError, match=r"no part 'trian'.*train, dev, test, all"):
        read_eurlex(eurlex, split="trian")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (law("x")[:-10], r"x\.json, line \d+: invalid JSON"),
        (law("x", main_body=3), "'main_body' must be a list of strings, found a number"),
        (law("x", concepts="12"), "'concepts' must be a list"),
        ('{"celex_id": "x", "concepts": []}', "'main_body' of an EURLEX57K file is missing"),
    ],
)
def test_eurlex57k_bad_files_are_named_and_can_be_skipped(eurlex, content, message):
    (eurlex / "dev" / "x.json").write_text(content)
    with pytest.raises(BadRowError, match=message):
        read_eurlex(eurlex / "dev")
    report = ReadReport()
    assert [d.id for d in read_eurlex(eurlex / "dev", report, skip_bad_rows=True)] == ["c"]
    assert report.bad_rows == 1


def test_a_folder_of_other_json_files_is_no_layout(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "other"}')
    with pytest.raises(DataError, match=r"no layout known here.*package\.json"):
        read(tmp_path)


def test_an_empty_folder_is_no_layout(tmp_path):
    with pytest.raises(DataError, match="it holds: nothing"):
        read(tmp_path)


def story(number, split="TRAIN", topics="YES", labels=("grain", "wheat"), text=None):
    marked = "".join(f"<D>{label}</D>" for label in labels)
    text = text or (
        "<TEXT>&#2;\n<TITLE>FIRM &lt;FRM> GROWS</TITLE>\n<DATELINE>    TOWN, March 1 - </DATELINE>"
        "<BODY>Tom &amp; Co grew.\n    More follows.\n Reuter\n&#3;</BODY></TEXT>"
    )
    return (
        f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="5" NEWID="{number}">\n'
        f"<DATE> 1-MAR-1987</DATE>\n<TOPICS>{marked}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n"
        f"{text}\n</REUTERS>\n"
    )


@pytest.fixture
def reuters(tmp_path):
    head = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
    first = story(1) + story(2, split="TEST") + story(3, split="NOT-USED") + story(4, topics="NO")
    unmarked = '<TEXT TYPE="UNPROC">&#2;\nRAW TEXT CAF\xc9\n&#3;</TEXT>'
    second = story(5, labels=(), text=unmarked)
    (tmp_path / "reut2-000.sgm").write_bytes((head + first).encode("latin-1"))
    (tmp_path / "reut2-001.sgm").write_bytes((head + second).encode("latin-1"))
    return tmp_path


def test_reuters_train_part_of_modapte(reuters):
    report = ReadReport()
    assert read_reuters(reuters, report, split="train") == [
        Document("FIRM <FRM> GROWS\nTom & Co grew.\n    More follows.", ("grain", "wheat"), "1"),
        Document("RAW TEXT CAFÉ", (), "5"),
    ]
    assert report.unlabelled == 1


def test_reuters_test_part_of_modapte_leaves_out_unused_stories(reuters):
    assert [d.id for d in read_reuters(reuters, split="test")] == ["2"]
    assert [d.id for d in read_reuters(reuters, split="all")] == ["1", "2", "5"]


def test_reuters_needs_a_part(reuters):
    with pytest.raises(DataError, match="--split: train, test, all"):
        read_reuters(reuters)


def test_reuters_one_file(reuters):
    assert [d.id for d in read_reuters(reuters / "reut2-001.sgm", split="train")] == ["5"]


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (story(8).replace("</REUTERS>", ""), r"line 1: .*not closed by </REUTERS>"),
        (story(8).replace("LEWISSPLIT", "SPLIT"), "no attribute LEWISSPLIT"),
        (story(8).replace("TOPICS>", "SUBJECTS>"), "no element TOPICS"),
    ],
)
def test_reuters_damaged_stories_are_named_and_can_be_skipped(tmp_path, damaged, message):
    (tmp_path / "reut2-000.sgm").write_text(damaged + story(9))
    with pytest.raises(BadRowError, match=message):
        read_reuters(tmp_path, split="train")
    assert [d.id for d in read_reuters(tmp_path, split="train", skip_bad_rows=True)] == ["9"]


@pytest.fixture
def rcv1(tmp_path):
    (tmp_path / "lyrl2004_tokens_train.dat").write_text(
        ".I 2286\n.W\nrecov excit\nbring mexic\n\n.I 2287\n.W\nuruguay\n\n"
    )
    with gzip.open(tmp_path / "lyrl2004_tokens_test_pt0.dat.gz", "wt") as file:
        file.write(".I 26151\n.W\nprofit\n")
    (tmp_path / "lyrl2004_tokens_test_pt1.dat").write_text(".I 30000\n.W\n\n")
    (tmp_path / "rcv1-v2.topics.qrels").write_text("E11 2286 1\nM11 2286 1\nC15 26151 1\nE11 2286 1\n")
    return tmp_path


def test_rcv1_joins_tokens_and_topics(rcv1):
    report = ReadReport()
    assert read_rcv1(rcv1, report, split="train") == [
        Document("recov excit bring mexic", ("E11", "M11"), "2286"),
        Document("uruguay", (), "2287"),
    ]
    assert report.unlabelled == 1


def test_rcv1_test_part_spans_files(rcv1):
    assert [d.id for d in read_rcv1(rcv1, split="test")] == ["26151", "30000"]


def test_rcv1_one_token_file_finds_the_topics_beside_it(rcv1):
    assert read_rcv1(rcv1 / "lyrl2004_tokens_test_pt0.dat.gz") == [Document("profit", ("C15",), "26151")]


def test_rcv1_needs_topics_only_where_labels_are_needed(rcv1):
    (rcv1 / "rcv1-v2.topics.qrels").unlink()
    with pytest.raises(DataError, match=r"rcv1-v2\.topics\.qrels"):
        read_rcv1(rcv1, split="train")
    assert [d.labels for d in read_rcv1(rcv1, split="train", need_labels=False)] == [(), ()]


def test_rcv1_bad_topics_line_is_named(rcv1):
    (rcv1 / "rcv1-v2.topics.qrels").write_text("E11 2286 1\nE11 many 1\n")
    with pytest.raises(DataError, match=r"qrels, line 2: expected 'TOPIC story 1'"):
        read_rcv1(rcv1, split="train")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("stray\n.I 1\n.W\na\n", "line 1: expected a line '.I'"),
        (".I one\n.W\nb\n.I 1\n.W\na\n", "line 1: '.I' needs a number, found 'one'"),
        (".I 7\nb\n.I 1\n.W\na\n", "line 1: expected a line '.W'"),
    ],
)
def test_rcv1_bad_stories_are_named_and_can_be_skipped(rcv1, content, message):
    path = rcv1 / "lyrl2004_tokens_train.dat"
    path.write_text(content)
    with pytest.raises(BadRowError, match=message):
        read_rcv1(path)
    assert [d.id for d in read_rcv1(path, skip_bad_rows=True)] == ["1"]


@pytest.mark.parametrize("name", ["reuters21578", "rcv1", "svmlight"])
def test_layouts_are_not_read_from_standard_input(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"anything")))
    with pytest.raises(DataError, match="cannot be read from standard input"):
        read("-", format=name)


PAIRS = """<QApairs id='1.1'>
<question>
Who\tsang\t?
WP\tVBD\t.
</question>
<positive>
Tom\tsang\t.
NNP\tVBD\t.
3\t1\t1
</positive>
<negative>
Birds\t& bees\t.
NNS\tX\t.
</negative>
</QApairs>
"""


def read_pairs(folder, content, report=None, **options):
    (folder / "a.xml").write_text(content)
    return list(read_questions(folder / "a.xml", ReadOptions(format="trecqa", **options), report))


def test_trecqa_pseudo_xml(tmp_path):
    assert read_pairs(tmp_path, PAIRS) == [
        Question("Who sang ?", (Candidate("Tom sang .", 1), Candidate("Birds & bees .", 0)), "1.1")
    ]


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (PAIRS.replace("</QApairs>\n", ""), r"line 1: question '1.1' is not closed"),
        (PAIRS.replace(" id='1.1'", ""), r"line 1: <QApairs> has no id"),
        (PAIRS.replace("question>", "query>"), r"line 1: question '1.1' has no <question>"),
        (PAIRS.replace("positive>", "a>").replace("negative>", "b>"), "has no candidate"),
        (
            PAIRS.replace("Tom\tsang\t.\nNNP\tVBD\t.\n3\t1\t1\n", ""),
            r"line 7: expected tokens behind <positive>",
        ),
    ],
)
def test_trecqa_damaged_blocks_are_named_and_can_be_skipped(tmp_path, damaged, message):
    with pytest.raises(BadRowError, match=message):
        read_pairs(tmp_path, damaged + PAIRS)
    report = ReadReport()
    assert len(read_pairs(tmp_path, damaged + PAIRS, report, skip_bad_rows=True)) == 1
    assert report.bad_rows == 1


WIKIQA = (
    "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    'Q1\thow fast?\tD1\tSpeed\tD1-0\t"Speed" is fast.\t1\n'
    "Q1\thow fast?\tD1\tSpeed\tD1-1\tSlow.\t0\n"
)


def test_wikiqa_file(tmp_path):
    (tmp_path / "a.tsv").write_text(WIKIQA)
    expected = [Question("how fast?", (Candidate('"Speed" is fast.', 1), Candidate("Slow.", 0)), "Q1")]
    assert list(read_questions(tmp_path / "a.tsv", ReadOptions(format="wikiqa"))) == expected


def test_wikiqa_folder_needs_a_part(tmp_path):
    for part in ("train", "dev"):
        (tmp_path / f"WikiQA-{part}.tsv").write_text(WIKIQA.replace("Q1", part))
    assert [q.id for q in read_questions(tmp_path, ReadOptions(format="wikiqa", split="dev"))] == ["dev"]
    with pytest.raises(DataError, match="--split: train, dev, all"):
        list(read_questions(tmp_path, ReadOptions(format="wikiqa")))


def test_the_file_is_a_plugin(eurlex):
    code = (
        "from nlpcapsule.plugins import load_plugins; "
        "from nlpcapsule.data.readers.document_files import read_documents; "
        "from nlpcapsule.data.readers.reading import ReadOptions; "
        f"load_plugins([{published_layouts.__file__!r}]); "
        "print(*(row.id for row in read_documents('train', ReadOptions(format='eurlex57k'))))"
    )
    root = Path(published_layouts.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}  # no `benchmarks` to import
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=eurlex, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["a", "b"]
