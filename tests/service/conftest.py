"""Tiny models trained once, and clients of services around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")

from fastapi.testclient import TestClient

from nlpcapsule import AnswerRanker, CapsuleClassifier
from nlpcapsule.sample import load_documents, load_questions
from nlpcapsule.service.app import create_app
from nlpcapsule.service.served_model import load_served
from nlpcapsule.service.settings import ServiceSettings

TINY = {"embedding_size": 8, "filters": 8, "capsule_size": 8, "condensed": 4, "max_tokens": 60}
BROADER = {
    "street-light-out": {"name": "street light out", "broader": ["lights"]},
    "street-light-glare": {"broader": ["lights"]},
    "lights": {"name": "lights"},
}


@pytest.fixture(scope="session")
def label_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels") / "letters"
    documents = load_documents("train")[:150]
    classifier = CapsuleClassifier(epochs=2, settings={**TINY, "lexical": "one-vs-rest"})
    classifier.fit([row.text for row in documents], [row.labels for row in documents])
    classifier.save(folder)
    return folder


@pytest.fixture(scope="session")
def answer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers") / "questions"
    questions = load_questions("train")[:16]
    ranker = AnswerRanker(epochs=1, settings={**TINY, "max_tokens": 30})
    ranker.fit(
        [row.text for row in questions],
        [[candidate.text for candidate in row.candidates] for row in questions],
        [[int(candidate.label == 1) for candidate in row.candidates] for row in questions],
    )
    ranker.save(folder)
    return folder


@pytest.fixture(scope="session")
def served_labels(label_folder):
    return load_served(label_folder)


@pytest.fixture
def start(served_labels, tmp_path) -> Iterator[Callable[..., TestClient]]:
    """Start a service around the tiny label model, with settings; it is closed after the test."""
    open_clients = []

    def started(served=served_labels, **settings) -> TestClient:
        chosen = {"feedback": tmp_path / "feedback.sqlite", "watch_seconds": 0, **settings}
        folder = chosen.pop("model", Path("letters"))
        app = create_app(ServiceSettings(model=folder, **chosen), served)
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        client.__enter__()
        open_clients.append(client)
        return client

    yield started
    for client in open_clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(start, tmp_path):
    hierarchy = tmp_path / "broader.json"
    hierarchy.write_text(json.dumps(BROADER), encoding="utf-8")
    return start(hierarchy=hierarchy)


@pytest.fixture
def answer_client(start, answer_folder):
    return start(load_served(answer_folder))
