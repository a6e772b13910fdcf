"""A service ranks with the exported network of its folder, and loads torch when it has to explain."""

import gc
import itertools
import json
import shutil
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from test_model_swap import save_another

from nlpcapsule.errors import ModelFolderError
from nlpcapsule.export import prediction
from nlpcapsule.export.export_model import export_model
from nlpcapsule.export.onnx_scorer import OnnxScorer
from nlpcapsule.model_folder import loading
from nlpcapsule.sample import load_documents
from nlpcapsule.service import run
from nlpcapsule.service.served_model import ModelHolder, folder_version, load_served
from nlpcapsule.service.settings import ServiceSettings

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

TEXTS = [document.text for document in load_documents("test-seen")[:12]]
BODY = {"documents": [{"text": text} for text in TEXTS]}
EXPLAIN = {"text": TEXTS[0], "top_k": 1}


@pytest.fixture(scope="module")
def exported_folder(label_folder, tmp_path_factory) -> Path:
    folder = shutil.copytree(label_folder, tmp_path_factory.mktemp("exported") / "letters")
    export_model(folder)
    return folder


@pytest.fixture(scope="module")
def another_folder(tmp_path_factory) -> Path:
    """A model with other labels, and in `exported` the same with an export."""
    folder = tmp_path_factory.mktemp("another") / "letters"
    save_another(folder)
    export_model(shutil.copytree(folder, folder.with_name("exported")))
    return folder


@pytest.fixture
def folder(exported_folder, tmp_path) -> Path:
    return shutil.copytree(exported_folder, tmp_path / "letters")


def replace_by(other: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(other, folder)


@pytest.fixture
def loads(monkeypatch) -> list:
    """The folders that torch has loaded."""
    found, load = [], loading.load_model

    def counted(folder, *arguments):
        found.append(folder)
        return load(folder, *arguments)

    monkeypatch.setattr(loading, "load_model", counted)
    return found


def test_the_exported_network_ranks_as_torch_does(folder, start, client, loads):
    exported = start(load_served(folder), model=folder)
    assert isinstance(exported.app.state.service.label_model().scorer.scorer, OnnxScorer)
    found, expected = (each.post("/v1/labels", json=BODY).json()["documents"] for each in (exported, client))
    for row, other in zip(found, expected, strict=True):
        assert [label["label"] for label in row["labels"]] == [label["label"] for label in other["labels"]]
        scores = [[label["score"] for label in each["labels"]] for each in (row, other)]
        np.testing.assert_allclose(*scores, atol=1e-4)
    assert not loads


def test_an_exported_model_is_described_as_in_torch(folder, start, client, loads):
    exported = start(load_served(folder), model=folder)
    own = {"version": folder_version(folder), "loaded_at": None, "has_hierarchy": None}
    answers = [each.get("/v1/model").json() for each in (exported, client)]
    assert answers[0]["version"] == folder_version(folder)
    assert answers[0] | own == answers[1] | own
    projects = [each.get("/v1/projects/letters").json() for each in (exported, client)]
    assert projects[0]["name"].split()[0] == projects[1]["name"].split()[0]
    assert not loads


def test_explanations_are_those_of_torch_which_is_loaded_once(folder, start, client, loads):
    exported = start(load_served(folder), model=folder)
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda _: exported.post("/v1/explain", json=EXPLAIN).json(), range(4))]
        served = {*pool.map(lambda _: exported.app.state.service.holder.with_torch(), range(4))}
    assert {answer["version"] for answer in answers} == {folder_version(folder)}
    expected = client.post("/v1/explain", json=EXPLAIN).json()["explanation"]
    assert all(answer["explanation"] == expected for answer in answers)
    assert expected["labels"][0]["capsules"]
    assert len(loads) == len(served) == 1


def test_threads_that_explain_at_the_same_time_load_torch_once(folder, loads):
    holder, at_once = ModelHolder(folder, load_served(folder)), threading.Barrier(4)

    def explain(_):
        at_once.wait()
        return holder.with_torch()

    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(explain, range(4))}) == len(loads) == 1


def test_new_versions_with_and_without_an_export_are_taken_up(folder, another_folder, start):
    client = start(load_served(folder), model=folder)
    holder = client.app.state.service.holder
    client.post("/v1/explain", json=EXPLAIN)
    for other in (another_folder, another_folder.with_name("exported"), another_folder):
        replace_by(other, folder)
        assert holder.refresh()
        assert holder.current.is_exported == (other != another_folder)
        answers = [client.post("/v1/labels", json=BODY), client.post("/v1/explain", json=EXPLAIN)]
        assert [answer.json()["version"] for answer in answers] == [folder_version(other)] * 2
        assert (holder._with_torch is None) == (other == another_folder), "two networks of torch in memory"


def test_a_network_of_an_older_version_does_not_explain(folder, another_folder):
    """As one that was still being loaded for an explanation when the version changed."""
    holder = ModelHolder(folder, load_served(folder))
    older = holder.with_torch()
    replace_by(another_folder.with_name("exported"), folder)
    assert holder.refresh()
    holder._with_torch = older
    assert holder.with_torch().version == folder_version(folder) != older.version


def test_an_explanation_after_the_folder_was_replaced_names_the_new_version(folder, another_folder, start):
    client = start(load_served(folder), model=folder)
    before = client.post("/v1/labels", json=BODY).json()["version"]
    replace_by(another_folder, folder)
    explained = client.post("/v1/explain", json=EXPLAIN).json()
    assert explained["version"] == folder_version(folder) != before
    assert explained["explanation"]["labels"][0]["label"] in ("weather", "sport")
    assert client.post("/v1/labels", json=BODY).json()["version"] == folder_version(folder)


def test_a_model_that_is_gone_ranks_and_the_explanation_is_refused_without_naming_folders(folder, start):
    client = start(load_served(folder), model=folder)
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    assert client.post("/v1/labels", json=BODY).status_code == 200
    refused = client.post("/v1/explain", json=EXPLAIN)
    assert refused.status_code == 503
    assert str(folder) not in refused.text


@pytest.mark.parametrize("is_read", [True, False])
def test_a_model_that_is_replaced_while_it_is_loaded_is_loaded_again(
    folder, label_folder, monkeypatch, is_read
):
    """By one without an export, after that was read or before."""
    calls = itertools.count()

    def replace():
        if next(calls) == 0:
            replace_by(label_folder, folder)

    load, listed = prediction.load_guarded, prediction.listed_names
    if is_read:
        monkeypatch.setattr(prediction, "load_guarded", lambda *given: (load(*given), replace())[0])
    else:
        monkeypatch.setattr(prediction, "listed_names", lambda place: (listed(place), replace())[0])
    served = load_served(folder)
    assert served.version == folder_version(folder) == folder_version(label_folder)
    assert not served.is_exported


def test_torch_is_not_imported_before_an_explanation(folder):
    program = f"""
import sys
from pathlib import Path
from fastapi.testclient import TestClient
import nlpcapsule.cli.serve, nlpcapsule.service.run
from nlpcapsule.service.app import create_app
from nlpcapsule.service.settings import ServiceSettings

with TestClient(create_app(ServiceSettings(model=Path({str(folder)!r}))), "http://localhost") as client:
    assert client.post("/v1/labels", json={BODY!r}).status_code == 200
    assert client.get("/v1/vocabulary").status_code == 200
    print("torch" in sys.modules)
    assert client.post("/v1/explain", json={EXPLAIN!r}).status_code == 200
    print("torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]


@pytest.fixture
def said(monkeypatch):
    """Run a service that ends at once; return what it says after its address."""
    monkeypatch.setattr(run.uvicorn.Server, "run", lambda server, sockets: None)
    monkeypatch.setattr(run.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(run, "set_up_logs", lambda: None)

    def serve(folder: Path) -> list[str]:
        lines: list[str] = []
        run.serve(ServiceSettings(model=folder, port=0), lines.append, lines.append)
        assert lines[0].startswith("http://127.0.0.1:")
        return lines[1:]

    return serve


def test_it_says_which_network_answers(folder, label_folder, said):
    assert said(folder) == ["answers with the exported network (ONNX Runtime)"]
    assert said(label_folder) == ["answers with torch's network"]


def test_without_the_runtime_torch_answers_and_that_is_said(
    folder, another_folder, said, start, monkeypatch, caplog
):
    monkeypatch.setattr(prediction, "has_runtime", lambda: False)
    (line,) = said(folder)
    assert "pip install 'nlpcapsule[onnx]'; torch is used" in line
    client = start(load_served(folder), model=folder)
    assert not client.app.state.service.holder.current.is_exported
    assert client.post("/v1/labels", json=BODY).status_code == 200
    replace_by(another_folder.with_name("exported"), folder)
    assert client.app.state.service.holder.refresh()
    assert any(line == record.message for record in caplog.records)


def test_a_model_that_is_replaced_is_freed(folder, said, monkeypatch):
    freed = []

    def replace(server, sockets):
        holder = server.config.app.state.service.holder
        first, holder._served = weakref.ref(holder.current), None
        gc.collect()
        freed.append(first() is None)

    monkeypatch.setattr(run.uvicorn.Server, "run", replace)
    said(folder)
    assert freed == [True]


def test_the_command_says_it_after_the_address(folder, tmp_path):
    from running import running

    with running(folder, "--feedback", tmp_path / "feedback.sqlite") as service:
        assert service.ask(body=json.dumps(BODY).encode())["documents"]
        code, told = service.stop()
    assert (code, told.splitlines()[0]) == (0, "answers with the exported network (ONNX Runtime)")


def test_an_export_that_the_runtime_refuses_is_left_aside(folder, monkeypatch):
    def refuse(path, label_count):
        raise ModelFolderError("an operator is too new")

    monkeypatch.setattr(OnnxScorer, "load", refuse)
    said = []
    served = load_served(folder, said.append)
    assert not served.is_exported
    assert served.version == folder_version(folder)
    assert len(said) == 1
    assert "the exported network cannot be used, so torch is" in said[0]
    assert "an operator is too new" in said[0]


def test_a_damaged_folder_is_refused_in_spite_of_its_export(folder):
    (folder / "labels.json").write_text("[]", encoding="utf-8")
    said = []
    with pytest.raises(ModelFolderError):
        load_served(folder, said.append)
    assert said == []
