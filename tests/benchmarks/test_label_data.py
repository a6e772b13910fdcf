"""Label data sets: the right documents in the right part, and nothing learned from report documents."""

from pathlib import Path

import numpy as np
import pytest
from tiny_data import (
    EURLEX_REPORT,
    REUTERS_TEST,
    REUTERS_TRAIN,
    tiny_parts,
    write_eurlex,
    write_jsonl,
    write_reuters,
    write_vectors,
)
from typer.testing import CliRunner

from benchmarks import label_data
from benchmarks.__main__ import app
from benchmarks.encoded_parts import EncodedParts
from benchmarks.label_data import label_parts
from nlpcapsule.data.readers.document_files import read_documents
from nlpcapsule.errors import ConfigError, DataError
from nlpcapsule.sample import load_documents

REAL_DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    write_eurlex(folder)
    write_reuters(folder)
    write_vectors(folder)
    return folder


def numbers(parts, part):
    """The documents' numbers, told by how often they say "fish"."""
    fish = parts.tokenizer.vocabulary.index("fish")
    return [int((np.asarray(row) == fish).sum()) for row in getattr(parts, part).tokens]


def label_names(parts, part):
    names = parts.labels.ids
    return [{names[label] for label in row if label < len(names)} for row in getattr(parts, part).labels]


def test_eurlex15k_is_cut_by_the_listed_ids(data, tmp_path):
    parts = label_parts("eurlex15k", data, tmp_path / "cache")
    assert numbers(parts, "train") == [0, 1, 2, 3, 4]
    assert numbers(parts, "select") == [0, 2, 3, 5]
    assert [f"dev{number}" for number in numbers(parts, "report")] == list(EURLEX_REPORT)
    assert set(parts.labels.ids) == {"concept0", "concept1", "unmapped"}
    assert label_names(parts, "report") == [{"concept1", "unmapped"}, {"concept0", "unmapped"}]
    assert parts.vectors.shape == (parts.tokenizer.size, 100)
    assert parts.vectors[parts.tokenizer.vocabulary.index("fish")].tolist() == [0.5] * 100


def test_microthesauri_take_the_place_of_concepts_and_concepts_without_one_are_dropped(data, tmp_path):
    parts = label_parts("microthesauri", data, tmp_path / "cache")
    assert set(parts.labels.ids) == {"5206", "1006"}
    assert label_names(parts, "train") == [{"5206"}, {"1006"}, {"5206"}, {"1006"}, {"5206"}]
    assert label_names(parts, "report") == [{"1006"}, {"5206"}]
    assert numbers(parts, "select") == [0, 2, 3, 5]


def test_reuters_is_selected_on_a_tenth_of_its_training_part(data, tmp_path):
    parts = label_parts("reuters", data, tmp_path / "cache")
    train, select = numbers(parts, "train"), numbers(parts, "select")
    assert len(select) == REUTERS_TRAIN // 10
    assert sorted(train + select) == list(range(REUTERS_TRAIN))
    assert numbers(parts, "report") == list(range(REUTERS_TEST))


def test_the_sample_is_reported_on_phrasings_that_training_never_saw(tmp_path):
    parts = label_parts("sample", None, tmp_path)
    sizes = [len(load_documents(part)) for part in ("train", "dev", "test-unseen")]
    assert [len(parts.train), len(parts.select), len(parts.report)] == sizes
    assert parts.vectors is None


@pytest.mark.parametrize("name", ["eurlex15k", "microthesauri", "reuters"])
def test_nothing_is_learned_or_selected_from_report_documents(data, tmp_path, name):
    before = label_parts(name, data, tmp_path / "before")
    strange = {"text": "milk squid squid squid", "labels": ["concept0", "news of squid"]}
    if name == "reuters":
        rows = [{"id": f"test{number}", **strange} for number in range(REUTERS_TEST)]
        write_jsonl(data / "reuters21578" / "modapte90.test.jsonl.gz", rows)
    else:
        path = data / "eurlex57k" / "dev.jsonl.gz"
        rows = [
            {"id": row.id, "text": row.text, "labels": list(row.labels)}
            | (strange if row.id in EURLEX_REPORT else {})
            for row in read_documents(path)
        ]
        write_jsonl(path, rows)
    after = label_parts(name, data, tmp_path / "after")
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    assert after.labels.to_json() == before.labels.to_json()
    for part in ("train", "select"):
        assert getattr(after, part).fingerprint() == getattr(before, part).fingerprint()
    assert after.report.fingerprint() != before.report.fingerprint()


def test_what_was_made_once_is_used_again(data, tmp_path, monkeypatch):
    made = label_parts("reuters", data, tmp_path / "cache")
    monkeypatch.setattr(label_data, "prepare_labels", lambda *_: pytest.fail("made again"))
    assert label_parts("reuters", data, tmp_path / "cache").fingerprint() == made.fingerprint()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["reuters"]  # nothing half made is left


def test_a_data_set_that_another_process_made_meanwhile_is_left_as_it_is(data, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    prepare = label_data.prepare_labels

    def prepare_late(*arguments):
        tiny_parts().save(cache / "reuters")
        return prepare(*arguments)

    monkeypatch.setattr(label_data, "prepare_labels", prepare_late)
    assert len(label_parts("reuters", data, cache).train) == REUTERS_TRAIN - REUTERS_TRAIN // 10
    assert EncodedParts.load(cache / "reuters").fingerprint() == tiny_parts().fingerprint()


def test_encoded_parts_in_the_data_folder_come_before_texts_and_cache(data, tmp_path):
    label_parts("eurlex15k", data, tmp_path / "cache")
    tiny_parts().save(data / "eurlex15k")
    found = label_parts("eurlex15k", data, tmp_path / "cache")
    assert found.fingerprint() == tiny_parts().fingerprint()


@pytest.mark.parametrize(
    ("name", "folder"),
    [("eurlex15k", "eurlex57k"), ("microthesauri", "eurlex57k"), ("reuters", "reuters21578")],
)
def test_a_folder_without_the_data_is_refused(tmp_path, name, folder):
    with pytest.raises(DataError, match=f"{tmp_path}: expected a folder that holds {folder}/"):
        label_parts(name, tmp_path, tmp_path / "cache")


def test_real_data_need_a_folder(tmp_path):
    with pytest.raises(DataError, match="reuters is not embedded: name its folder with --data"):
        label_parts("reuters", None, tmp_path)


def test_an_unknown_data_set_is_refused_with_a_suggestion(data, tmp_path):
    with pytest.raises(ConfigError, match=r"there is no data set 'reuter': did you mean 'reuters'\?"):
        label_parts("reuter", data, tmp_path / "cache")


def test_prepare_writes_a_folder_per_data_set(data, tmp_path):
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["prepare", str(data), str(out), "eurlex15k", "reuters"])
    assert result.exit_code == 0, result.exception
    assert result.output.splitlines() == [
        "eurlex15k: 5 train, 4 select, 2 report",
        "reuters: 18 train, 2 select, 4 report",
    ]
    assert EncodedParts.load(out / "eurlex15k").name == "eurlex15k"


@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="the real data do not lie beside the repository")
def test_the_real_eurlex15k_has_the_sizes_of_the_paper():
    train, select, report = label_data._eurlex15k(REAL_DATA)
    assert (len(train), len(select), len(report)) == (15_449, 2_135, 3_865)
    assert not {row.id for row in select} & {row.id for row in report}
