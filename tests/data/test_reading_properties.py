"""Properties of the readers: what is written is read back, and a bad row is found wherever it stands."""

import csv
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.data.readers.reading import ReadOptions, ReadReport
from nlpcapsule.errors import BadRowError

any_text = st.text(st.characters(exclude_categories=["Cs"]))
text_without_nul = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
labels = st.lists(any_text.filter(lambda label: label.strip()), unique=True, max_size=4)
cell_label = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"], exclude_characters=";"))
cell_labels = st.lists(cell_label.filter(bool), unique=True, max_size=4)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(any_text, labels), min_size=1, max_size=5), ascii_only=st.booleans())
def test_any_unicode_survives_jsonl(folder, rows, ascii_only):
    path = folder / "a.jsonl"
    with path.open("w", encoding="utf-8", newline="") as file:
        for text, names in rows:
            file.write(json.dumps({"text": text, "labels": names}, ensure_ascii=ascii_only) + "\n")
    assert [(d.text, list(d.labels)) for d in read_documents(path)] == rows


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(text_without_nul, cell_labels), min_size=1, max_size=5),
    dialect=st.sampled_from([("csv", "excel"), ("tsv", "excel-tab"), ("csv", "unix")]),
)
def test_any_unicode_survives_csv_and_tsv(folder, rows, dialect):
    suffix, dialect_name = dialect
    path = folder / f"a.{suffix}"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, dialect=dialect_name)
        writer.writerow(["text", "labels"])
        writer.writerows([text, ";".join(names)] for text, names in rows)
    assert [(d.text, list(d.labels)) for d in read_documents(path)] == rows


@settings(deadline=None, max_examples=60)
@given(
    before=st.lists(text_without_nul, max_size=6),
    after=st.lists(text_without_nul, max_size=6),
    suffix=st.sampled_from(["csv", "jsonl"]),
)
def test_a_bad_row_is_found_in_its_line(folder, before, after, suffix):
    path = folder / f"bad.{suffix}"
    with path.open("w", encoding="utf-8", newline="") as file:
        if suffix == "csv":
            writer = csv.writer(file, dialect="unix")
            writer.writerow(["text", "labels"])
            writer.writerows([text, "x"] for text in before)
        else:
            file.writelines(json.dumps({"text": text, "labels": ["x"]}) + "\n" for text in before)
    bad_line = path.read_bytes().count(b"\n") + 1
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write("bad\n")
        if suffix == "csv":
            csv.writer(file, dialect="unix").writerows([text, "x"] for text in after)
        else:
            file.writelines(json.dumps({"text": text, "labels": ["x"]}) + "\n" for text in after)
    with pytest.raises(BadRowError) as caught:
        list(read_documents(path))
    assert caught.value.line == bad_line
    if before or after:
        report = ReadReport()
        texts = [d.text for d in read_documents(path, ReadOptions(skip_bad_rows=True), report)]
        assert texts == before + after
        assert report.bad_rows == 1
