"""Files of label names: every way to write one gives the same names, and a bad one says what is wrong."""

import gzip
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpcapsule.data.label_names import LabelName, Thesaurus
from nlpcapsule.errors import DataError

CHEESE = {
    "10": LabelName("cheese"),
    "11": LabelName("blue-veined cheese", ("Stilton", "Danish blue")),
}
WRITTEN = {
    "a.json": json.dumps(
        {"10": "cheese", "11": {"name": "blue-veined cheese", "alternatives": ["Stilton", "Danish blue"],
                                "parents": ["10"]}}
    ),
    "eurovoc.json": json.dumps(
        {
            "10": {"concept_id": "10", "label": "cheese", "alt_labels": [], "parents": []},
            "11": {"concept_id": "11", "label": "blue-veined cheese",
                   "alt_labels": ["Stilton", "Danish blue"], "parents": ["10"]},
        }
    ),
    "a.jsonl": '{"label": 10, "name": "cheese"}\n\n{"label": "11", "title": "blue-veined cheese", '
    '"alternatives": ["Stilton", "Danish blue"], "parents": ["10"]}\n',
    "a.csv": 'label,name,alternatives,parents\n10,cheese,,\n'
    '11,blue-veined cheese,"Stilton; Danish blue",10\n',
    "a.tsv": "name\tlabel\talternatives\tparents\ncheese\t10\n"
    "blue-veined cheese\t11\tStilton;Danish blue\t10\n",
}  # fmt: skip


def read(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return Thesaurus.read(folder / name)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("zipped", [False, True])
def test_all_ways_to_write_names_give_the_same(tmp_path, name, zipped):
    path = tmp_path / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(WRITTEN[name].encode()) if zipped else WRITTEN[name].encode())
    thesaurus = Thesaurus.read(path)
    assert {label: thesaurus[label] for label in thesaurus} == CHEESE


def test_the_text_of_a_label_is_its_name_and_its_alternatives():
    assert Thesaurus(CHEESE).texts(["11", "10"]) == ["blue-veined cheese; Stilton; Danish blue", "cheese"]


def test_a_label_that_is_not_named_goes_by_itself():
    thesaurus = Thesaurus(CHEESE)
    assert thesaurus["butter"] == LabelName("butter")
    assert "butter" not in thesaurus
    assert list(thesaurus) == ["10", "11"]


NAMES = st.text(min_size=1).filter(str.strip)


@given(st.dictionaries(st.text(), st.builds(LabelName, NAMES.map(str.strip), st.tuples(NAMES)), min_size=1))
def test_what_is_written_is_read_again(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("names") / "names.json"
    path.write_text(Thesaurus(names).to_json(), encoding="utf-8")
    again = Thesaurus.read(path)
    assert {label: again[label] for label in again} == names


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "[1]", "expected a JSON object, found a list"),
        ("a.json", '{"1": "a",\n "2": }', r"a\.json, line 2: invalid JSON"),
        ("a.json", '{"1": 5}', "'1' has a number for a name; write a string, or an object"),
        ("a.json", '{"1": {"alternatives": ["x"]}}', "'1' has no name: expected a string under 'name'"),
        ("a.json", '{"1": "  "}', "'1' has no name: expected a string under 'name', found a blank one"),
        ("a.json", '{"1": "x", "2": "y", "1": "z"}', "the key '1' is repeated; fix it"),
        ("a.json", '{"1": {"name": "x", "alternatives": "2"}}', "'alternatives' must be a list of strings"),
        ("a.json", "{}", "names no label; check that this is the right file"),
        (
            "a.jsonl",
            '{"label": "1", "name": "x"}\n{"name": "y"}',
            r"a\.jsonl, line 2: the key 'label' is missing; the row has: 'name'; write",
        ),
        ("a.jsonl", '{"label": " ", "name": "x"}', r"a\.jsonl, line 1: 'label' holds a blank label"),
        ("a.jsonl", '{"label": null, "name": "x"}', r"a\.jsonl, line 1: 'label' holds a blank label"),
        ("a.jsonl", '{"label": true, "name": "x"}', "'label' must be a string or a number, found a boolean"),
        (
            "a.jsonl",
            '{"label": "1", "name": "x"}\n{"label": "1", "name": "y"}',
            "line 2: .*'1' is named twice",
        ),
        ("a.csv", "label,text\n1,x\n", r"a\.csv, line 1: the header has no column 'name'.*'label', 'text'"),
        ("a.csv", "", r"a\.csv, line 1: the header has no column 'label'; its columns are: nothing"),
        ("a.csv", "label,name,name\n1,x,y\n", r"a\.csv, line 1: the header has the column 'name' twice"),
        (
            "a.csv",
            "label,alternatives,name,alternatives \n1,,x,\n",
            r"a\.csv, line 1: the header has the column 'alternatives' twice",
        ),
        (
            "a.csv",
            "label,name\ncats,animals\n\ndogs,cheese, blue-veined\n",
            r"a\.csv, line 4: expected 2 columns as in the header, found 3; put quotes around cells",
        ),
        ("a.csv", "name,label\nx,1\ny\n", r"a\.csv, line 3: 'label' holds a blank label"),
        ("a.csv", "label,name\ndogs,x\n dogs,y\n", "line 3: the label 'dogs' is named twice"),
        ("a.csv", 'label,name\n1,"x\n', r"a\.csv, line 2: a quote that is opened in this row"),
        ("a.csv", 'label,name\n1,"x\ny"\n2,"z" z\n', r"a\.csv, line 4: the row cannot be split into cells"),
        ("a.tsv", 'label\tname\n1\tx\n2\t"y" z\n', r"a\.tsv, line 3: the row cannot be split into cells"),
        ("a.tsv", "label\tname\n1\tx\n2\t\n", "line 3: the label '2' has no name"),
        ("a.txt", "1 x", r"expected a \.json, \.jsonl, \.csv or \.tsv file"),
    ],
)
def test_a_bad_file_is_refused_with_what_was_expected(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", " label , name\n dogs , animals \n"),
        ("a.tsv", "label\tname\ndogs \t animals\n"),
    ],
)
def test_blanks_around_the_cells_of_a_table_are_dropped(tmp_path, name, text):
    thesaurus = read(tmp_path, name, text)
    assert {label: thesaurus[label] for label in thesaurus} == {"dogs": LabelName("animals")}


def test_a_comma_between_quotes_belongs_to_the_name(tmp_path):
    thesaurus = read(tmp_path, "a.csv", 'label,name\ndogs,"cheese, blue-veined"\n')
    assert thesaurus["dogs"] == LabelName("cheese, blue-veined")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        Thesaurus.read(tmp_path / "names.json")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"cut \\ud83d": {"name": "off \\ud83d", "alternatives": ["x \\ud83d"]}}'),
        ("a.jsonl", '{"label": "cut \\ud83d", "name": "off \\ud83d", "alternatives": ["x \\ud83d"]}'),
    ],
)
def test_half_of_a_surrogate_pair_becomes_the_replacement_character(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    thesaurus = Thesaurus.read(tmp_path / name)
    assert thesaurus["cut \ufffd"] == LabelName("off \ufffd", ("x \ufffd",))


def test_a_pipe_is_refused(tmp_path):
    pipe = tmp_path / "a.json"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a pipe or a device, expected a file"):
        Thesaurus.read(pipe)
