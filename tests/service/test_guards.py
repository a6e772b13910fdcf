"""Tokens, hosts, the number of requests at a time, headers, and logs without texts."""

import asyncio
import json
import logging
import threading

import httpx2 as httpx
import pytest

from nlpcapsule.service.guards import SECURITY_HEADERS
from nlpcapsule.service.logs import JsonFormatter

BODY = {"documents": [{"text": "a secret letter"}]}


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/v1/model", "/healthz", "/nowhere"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "unsafe" not in headers["content-security-policy"]


class TestToken:
    @pytest.fixture
    def locked(self, start):
        return start(token="open sesame")

    @pytest.mark.parametrize("given", [None, "Bearer wrong", "Basic open sesame", "Bearer", "open sesame"])
    @pytest.mark.parametrize("path", ["/v1/model", "/metrics", "/v1/projects"])
    def test_without_it_the_api_is_closed(self, locked, path, given):
        response = locked.get(path, headers={"authorization": given} if given else {})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"

    def test_with_it_the_api_is_open(self, locked):
        assert locked.get("/v1/model", headers={"authorization": "bearer open sesame"}).status_code == 200

    @pytest.mark.parametrize("path", ["/", "/page/style.css", "/healthz", "/readyz"])
    def test_the_page_and_health_need_none(self, locked, path):
        assert locked.get(path).status_code == 200

    def test_it_is_not_shown_with_the_settings(self, locked):
        assert "sesame" not in repr(locked.app.state.service.settings)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", ""])
def test_a_local_service_refuses_other_names(client, host):
    """A page elsewhere could otherwise reach it under a name that it makes resolve to this machine."""
    assert client.get("/v1/model", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000"])
def test_local_names_are_allowed(client, host):
    assert client.get("/v1/model", headers={"host": host}).status_code == 200


def test_a_public_service_may_be_called_anything_unless_names_are_given(start):
    assert start(host="0.0.0.0").get("/v1/model", headers={"host": "any.example"}).status_code == 200
    named = start(host="0.0.0.0", hosts=("ours.example",))
    assert named.get("/v1/model", headers={"host": "ours.example"}).status_code == 200
    assert named.get("/v1/model", headers={"host": "any.example"}).status_code == 421


def test_too_many_requests_at_a_time_are_told_to_come_back(start, monkeypatch):
    client = start(most_requests=2)
    service = client.app.state.service
    go_on, rank = threading.Event(), service.label_model().rank

    def slow(texts, top_k):
        assert go_on.wait(300)
        return rank(texts, top_k)

    monkeypatch.setattr(type(service.label_model()), "rank", lambda self, texts, top_k: slow(texts, top_k))

    async def crowd():
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as caller:
            first = [asyncio.create_task(caller.post("/v1/labels", json=BODY)) for _ in range(2)]
            await asyncio.sleep(0.2)
            refused = await caller.post("/v1/labels", json=BODY)
            health = await caller.get("/healthz")
            go_on.set()
            return refused, health, [await task for task in first]

    refused, health, first = asyncio.run(crowd())
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert health.status_code == 200
    assert [response.status_code for response in first] == [200, 200]
    assert client.post("/v1/labels", json=BODY).status_code == 200


def test_requests_are_logged_without_their_texts(client, caplog):
    logging.getLogger("nlpcapsule.service").propagate = True
    with caplog.at_level(logging.INFO, "nlpcapsule.service"):
        client.post("/v1/labels", json=BODY)
        client.post("/v1/labels", json={**BODY, "top_k": "secret"})
        client.get("/v1/vocabulary", params={"query": "secret"})
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    logged = [(line["path"], line["status"]) for line in lines if line["message"] == "request"]
    assert logged == [("/v1/labels", 200), ("/v1/labels", 422), ("/v1/vocabulary", 200)]
    assert "secret" not in json.dumps(lines)


def test_an_unexpected_error_is_a_problem_and_its_message_is_not_logged(client, caplog, monkeypatch):
    def broken(self, texts, top_k):
        raise RuntimeError(f"cannot rank {texts}")

    monkeypatch.setattr(type(client.app.state.service.label_model()), "rank", broken)
    logging.getLogger("nlpcapsule.service").propagate = True
    with caplog.at_level(logging.INFO, "nlpcapsule.service"):
        response = client.post("/v1/labels", json=BODY)
    assert response.status_code == 500
    assert response.json()["detail"].startswith("an unexpected error")
    lines = [JsonFormatter().format(record) for record in caplog.records]
    (told,) = [json.loads(line) for line in lines if "exception" in line]
    assert told["exception"] == "RuntimeError"
    assert any("in broken" in place for place in told["at"])
    assert "secret" not in "".join(lines)
