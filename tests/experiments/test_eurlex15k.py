"""The parts of eurlex15k come from the right files and do not overlap."""

import gzip
import json

import pytest
from typer.testing import CliRunner

from nlpcapsule.errors import DataError
from nlpcapsule.experiments.__main__ import app
from nlpcapsule.experiments.encoded_folder import EncodedParts
from nlpcapsule.experiments.eurlex15k import prepare_eurlex15k


@pytest.fixture
def data(tmp_path):
    """The layout of EURLEX57K with eight training and six dev documents."""
    source = tmp_path / "eurlex57k"
    source.mkdir()
    for part, count in (("train", 8), ("dev", 6)):
        rows = (
            {
                "id": f"{part}{number}",
                "title": f"{part} act",
                "text": f"article {number} on fish and milk",
                "labels": [f"concept{number % 2}"],
            }
            for number in range(count)
        )
        with gzip.open(source / f"{part}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    ids = {"train": [f"train{number}" for number in range(5)], "test": ["dev1", "dev4"]}
    (source / "eurlex15k_ids.json").write_text(json.dumps(ids), encoding="utf-8")
    (tmp_path / "vectors").mkdir()
    with gzip.open(tmp_path / "vectors" / "glove.6B.100d.trimmed.txt.gz", "wt", encoding="utf-8") as file:
        file.write("fish " + " ".join(["0.5"] * 100) + "\n")
    return tmp_path


def test_parts_are_cut_by_the_listed_ids(data):
    parts = prepare_eurlex15k(data, max_tokens=5)
    assert (len(parts.train), len(parts.select), len(parts.report)) == (5, 4, 2)
    assert max(parts.train.tokens.lengths) == 5
    assert parts.vectors.shape == (parts.tokenizer.size, 100)
    assert parts.vectors[parts.tokenizer.vocabulary.index("fish")].tolist() == [0.5] * 100


def test_the_command_line_writes_the_folder(data, tmp_path):
    result = CliRunner().invoke(app, ["prepare", str(data), str(tmp_path / "out"), "--max-tokens", "6"])
    assert result.exit_code == 0, result.exception
    assert "eurlex15k: 5 train, 4 select, 2 report" in result.output
    assert EncodedParts.load(tmp_path / "out").name == "eurlex15k"


def test_a_folder_without_the_data_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected a folder that holds eurlex57k/"):
        prepare_eurlex15k(tmp_path)
