"""Hugging Face: datasets go in, model folders go to and come from the hub; the network is never used."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from nlpcapsule import AnswerRanker, CapsuleClassifier
from nlpcapsule.errors import DataError, MissingExtraError, ModelFolderError, NlpCapsuleError
from nlpcapsule.hugging_face import dataset_columns, from_pretrained, is_dataset

TEXTS = ["rain and wind", "snow and ice and wind", "a goal in the last minute", "the match was lost"] * 6
LABELS = [["weather"], ["weather", "winter"], ["sport"], ["sport"]] * 6


@pytest.fixture(scope="module")
def fitted() -> CapsuleClassifier:
    return CapsuleClassifier("one-vs-rest").fit(TEXTS, LABELS)


class Names:
    """Stands for a ClassLabel."""

    names = ("sport", "weather", "winter")


class Table:
    """Stands for a dataset: named columns with features."""

    def __init__(self, feature: Any = None, **columns: list[Any]) -> None:
        self.columns, self.column_names = columns, list(columns)
        self.features = dict.fromkeys(columns, feature)

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]


def test_a_dataset_takes_the_place_of_texts_and_labels(fitted: CapsuleClassifier) -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"text": TEXTS, "labels": LABELS})
    assert is_dataset(table)
    other = CapsuleClassifier("one-vs-rest").fit(table)
    assert other.rank(TEXTS[:4]) == fitted.rank(TEXTS[:4])
    assert other.score(table) == fitted.score(TEXTS, LABELS)
    assert other.predict(table["text"])[:2] == fitted.predict(TEXTS[:2])
    with pytest.raises(DataError, match=r"a dictionary of datasets \('train'\)"):
        CapsuleClassifier("one-vs-rest").fit(datasets.DatasetDict({"train": table}))


def test_a_dataset_takes_the_place_of_questions() -> None:
    datasets = pytest.importorskip("datasets")
    columns = {
        "question": ["where is the library", "when does it open"] * 4,
        "candidates": [["at the market", "at six"], ["at six", "at the market"]] * 4,
        "labels": [[1, 0]] * 8,
    }
    table = datasets.Dataset.from_dict(columns)
    ranker = AnswerRanker("bm25").fit(table)
    other = AnswerRanker("bm25").fit(*columns.values())
    asked = columns["question"][:2], columns["candidates"][:2]
    assert ranker.rank(*asked) == other.rank(*asked)
    assert ranker.score(table) == other.score(*columns.values())
    assert ranker.predict(table) == other.predict(*list(columns.values())[:2])
    with pytest.raises(DataError, match="no column 'candidates'"):
        AnswerRanker("bm25").fit(table.remove_columns("candidates"))
    with pytest.raises(DataError, match="candidates must be a list of lists"):
        AnswerRanker("bm25").fit(columns["question"])


def test_numbers_of_a_class_label_become_names() -> None:
    datasets = pytest.importorskip("datasets")
    kind = datasets.ClassLabel(names=list(Names.names))
    features = datasets.Features({"text": datasets.Value("string"), "labels": datasets.Sequence(kind)})
    table = datasets.Dataset.from_dict({"text": ["a", "b"], "labels": [[1, 2], []]}, features=features)
    assert dataset_columns(table) == (["a", "b"], [["weather", "winter"], []])


@pytest.mark.parametrize("number", [-1, 3, 10**30, 0.5, float("nan")])
def test_a_number_without_a_name_is_refused(number: Any) -> None:
    with pytest.raises(DataError, match="is no number of its ClassLabel"):
        dataset_columns(Table(Names(), text=["a"], labels=[[0, number]]))


def test_a_single_number_is_one_label() -> None:
    assert dataset_columns(Table(Names(), text=["a", "b"], labels=[1.0, None])) == (
        ["a", "b"],
        [["weather"], []],
    )
    assert dataset_columns(Table([Names()], text=["a"], labels=[[0, 2]]))[1] == [["sport", "winter"]]
    assert dataset_columns(Table(body=["a"], tags=[["x"]]), "body", "tags") == (["a"], [["x"]])


def test_datasets_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(DataError, match="no column 'labels'; did you mean 'label'"):
        dataset_columns(Table(text=["a"], label=[["x"]]))
    with pytest.raises(DataError, match="numbers such as 3 without names"):
        dataset_columns(Table(text=["a"], labels=[[3]]))
    with pytest.raises(DataError, match="labels must be a list of lists"):
        CapsuleClassifier("one-vs-rest").fit(TEXTS)


def test_the_hub_layout_is_a_model_folder_with_front_matter(
    fitted: CapsuleClassifier, tmp_path: Path
) -> None:
    fitted.save_pretrained(tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    _, front, card = text.split("---\n", 2)
    rows = dict(line.split(": ", 1) for line in front.splitlines())
    assert json.loads(rows["library_name"]) == "nlpcapsule"
    assert json.loads(rows["pipeline_tag"]) == "text-classification"
    assert card.startswith("\n# Model card")
    for other in (
        CapsuleClassifier.from_pretrained(tmp_path / "model"),
        CapsuleClassifier.load(tmp_path / "model"),
    ):
        assert other.rank(TEXTS[:4]) == fitted.rank(TEXTS[:4])
    with pytest.raises(ModelFolderError, match=r"CapsuleClassifier\.load"):
        AnswerRanker.from_pretrained(tmp_path / "model")


class StubApi:
    """Records what would be sent to the hub."""

    calls: list[tuple[str, dict[str, Any]]]

    def __init__(self, store: Path, token: str | None) -> None:
        self.store, self.token, self.calls = store, token, []

    def create_repo(self, repository: str, **options: Any) -> None:
        self.calls.append((repository, options))

    def upload_folder(self, repo_id: str, folder_path: Path, commit_message: str) -> str:
        shutil.copytree(folder_path, self.store)
        return f"commit of {repo_id}"


def test_a_model_is_pushed_and_downloaded(
    fitted: CapsuleClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    api = StubApi(tmp_path / "remote", None)
    monkeypatch.setattr(hub, "HfApi", lambda token: api)
    assert fitted.push_to_hub("me/tagger") == "commit of me/tagger"
    assert api.calls == [("me/tagger", {"private": True, "exist_ok": True})]
    (api.store / ".gitattributes").touch()  # as the hub adds it

    def download(repository: str, revision: str | None, local_dir: str) -> None:
        assert (repository, revision) == ("me/tagger", "v2")
        shutil.copytree(api.store, local_dir, dirs_exist_ok=True)

    monkeypatch.setattr(hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    other = CapsuleClassifier.from_pretrained("me/tagger", revision="v2")
    assert other.rank(TEXTS[:4]) == fitted.rank(TEXTS[:4])


def test_a_failed_download_and_a_missing_package_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no connection")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "snapshot_download", fail)
    with pytest.raises(
        NlpCapsuleError, match="me/none is no folder, and cannot be downloaded: no connection"
    ):
        from_pretrained("me/none")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"nlpcapsule\[hub\]"):
        from_pretrained("me/none")
