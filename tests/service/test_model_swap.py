"""A new version in the model folder is served without a pause; a broken one is not."""

import itertools
import logging
import shutil
import threading

import pytest

from nlpcapsule import CapsuleClassifier
from nlpcapsule.service.served_model import ModelHolder, folder_version, load_served

BODY = {"documents": [{"text": "The street lamp is dark."}]}


@pytest.fixture
def folder(label_folder, tmp_path):
    return shutil.copytree(label_folder, tmp_path / "letters")


def save_another(folder):
    """Replace the model by one with other labels."""
    texts, labels = (
        ["rain and wind", "snow and ice", "a goal", "the match"] * 8,
        [["weather"], ["sport"]] * 16,
    )
    settings = {"condensed": 4, "filters": 8, "embedding_size": 8, "capsule_size": 8}
    CapsuleClassifier("label-query", epochs=1, settings=settings).fit(texts, labels).save(folder)


def test_the_version_depends_on_the_model_alone(folder, label_folder):
    assert folder_version(folder) == folder_version(label_folder)
    save_another(folder)
    assert folder_version(folder) != folder_version(label_folder)
    assert folder_version(folder / "nothing") is None


def test_a_new_version_is_taken_up(folder, start):
    client = start(load_served(folder), model=folder)
    before = client.post("/v1/labels", json=BODY).json()
    assert client.get("/v1/vocabulary").json()["total"] > 2
    save_another(folder)
    assert client.app.state.service.holder.refresh()
    after = client.post("/v1/labels", json=BODY).json()
    assert after["version"] != before["version"]
    assert {row["label"] for row in after["documents"][0]["labels"]} == {"weather", "sport"}
    assert client.get("/v1/vocabulary").json()["total"] == 2
    assert "nlpcapsule_model_swaps_total 1.0" in client.get("/metrics").text
    assert not client.app.state.service.holder.refresh()


def test_the_folder_is_watched(folder):
    changed = threading.Event()
    holder = ModelHolder(folder, load_served(folder), lambda served: changed.set())
    holder.watch(0.05)
    save_another(folder)
    assert changed.wait(300)
    holder.close()


def test_a_broken_version_is_not_served(folder, start):
    client = start(load_served(folder), model=folder)
    before = client.get("/v1/model").json()["version"]
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    assert not client.app.state.service.holder.refresh()
    assert client.get("/v1/model").json()["version"] == before
    assert client.post("/v1/labels", json=BODY).status_code == 200


def test_a_version_whose_files_arrive_after_its_manifest_is_served_when_all_are_there(folder, caplog):
    """As a plain copy of a folder may do."""
    holder = ModelHolder(folder, load_served(folder))
    save_another(folder)
    weights = folder / "network.safetensors"
    content = weights.read_bytes()
    for size in (0, 10, 10):
        weights.write_bytes(content[:size])
        assert not holder.refresh()
    weights.write_bytes(content)
    assert holder.refresh()
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["the new version is not served"]


def test_no_request_fails_while_versions_change(folder, start):
    client = start(load_served(folder), model=folder)
    holder, statuses, stop = client.app.state.service.holder, [], threading.Event()

    def ask():
        while not stop.is_set():
            statuses.append(client.post("/v1/labels", json=BODY).status_code)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    first, second = load_served(folder), None
    save_another(folder)
    second = load_served(folder)
    for turn in range(20):
        holder._served = second if turn % 2 else first
    holder.refresh()
    stop.set()
    for asker in askers:
        asker.join()
    assert statuses
    assert set(statuses) == {200}


def test_an_answer_names_the_version_that_gave_it(folder, start, monkeypatch):
    """Even if the model is replaced between any two looks at it."""
    first = load_served(folder)
    save_another(folder)
    second = load_served(folder)
    client = start(first, model=folder)
    turns = itertools.cycle([first, second])
    monkeypatch.setattr(ModelHolder, "current", property(lambda self: next(turns)))
    known = {served.version: set(served.model.labels.ids) for served in (first, second)}
    versions = set()
    for odd in range(4):
        ranked = client.post("/v1/labels", json=BODY).json()
        explained = client.post("/v1/explain", json={"text": "The lamp is dark.", "top_k": 1}).json()
        for answer, rows in (
            (ranked, ranked["documents"][0]["labels"]),
            (explained, explained["explanation"]["labels"]),
        ):
            versions.add(answer["version"])
            assert {row["label"] for row in rows} <= known[answer["version"]]
        project = client.get("/v1/projects").json()["projects"][0]
        assert any(
            version in project["name"] and project["vocab"]["size"] == len(labels)
            for version, labels in known.items()
        )
        if odd % 2:
            next(turns)
    assert len(versions) == 2
